  ;; A copy that ends past the end of memory.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (memory.copy (i32.const 0) (i32.const 65537) (i32.const 65536))
    (call $done))
