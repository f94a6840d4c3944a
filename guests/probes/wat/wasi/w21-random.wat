  ;; Random bytes: none, all of memory, more than that.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $ok (call $random_get (i32.const 4096) (i32.const 126976)))
    (call $ok (call $random_get (i32.const 131072) (i32.const 0)))
    (call $is (call $random_get (i32.const 131072) (i32.const 1)) (i32.const 21))
    (call $is (call $random_get (i32.const 1) (i32.const 131072)) (i32.const 21))
    (call $is (call $random_get (i32.const 0xffffffff) (i32.const 1)) (i32.const 21))
    (call $is (call $random_get (i32.const 0) (i32.const 0xffffffff)) (i32.const 21))
    (call $done))
