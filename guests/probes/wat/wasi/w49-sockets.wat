  ;; There is no network.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $is (call $sock_accept (i32.const 3) (i32.const 0) (i32.const 4096)) (i32.const 58))
    (call $is (call $sock_recv (i32.const 3) (i32.const 4096) (i32.const 1) (i32.const 0) (i32.const 4200) (i32.const 4204)) (i32.const 58))
    (call $is (call $sock_send (i32.const 1) (i32.const 4096) (i32.const 1) (i32.const 0) (i32.const 4200)) (i32.const 58))
    (call $is (call $sock_shutdown (i32.const 1) (i32.const 3)) (i32.const 58))
    (call $is (call $sock_accept (i32.const 0xffffffff) (i32.const 0xffffffff) (i32.const 0xffffffff)) (i32.const 58))
    (call $done))
