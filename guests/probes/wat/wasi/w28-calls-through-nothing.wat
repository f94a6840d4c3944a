  ;; A call through an empty place in a table.
  (table 2 funcref)
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call_indirect (i32.const 1))
    (call $done))
