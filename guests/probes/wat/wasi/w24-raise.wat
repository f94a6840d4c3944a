  ;; Signals that do not exist, and one that ends it.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $ok (call $proc_raise (i32.const 0)))
    (call $is (call $proc_raise (i32.const 99)) (i32.const 28))
    (call $is (call $proc_raise (i32.const 0xffffffff)) (i32.const 28))
    (drop (call $proc_raise (i32.const 9)))
    (call $done))
