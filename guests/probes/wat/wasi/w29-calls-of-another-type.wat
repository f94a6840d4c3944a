  ;; A call of a function by a type that it does not have.
  (table funcref (elem $done))
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (drop (call_indirect (param i32 i64) (result f64) (i32.const 1) (i64.const 1) (i32.const 0)))
    (call $done))
