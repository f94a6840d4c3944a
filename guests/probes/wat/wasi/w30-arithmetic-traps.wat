  ;; A division by zero.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (drop (i32.div_s (i32.const 1) (local.get $i)))
    (call $done))
