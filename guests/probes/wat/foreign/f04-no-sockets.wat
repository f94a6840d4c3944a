  ;; No descriptor is a socket.
  (func (export "_start")
    (call $is (call $sock_shutdown (i32.const 1) (i32.const 1)) (i32.const 57))
    (call $is (call $sock_shutdown (i32.const 9) (i32.const 1)) (i32.const 8))
    (call $is (call $sock_accept (i32.const 3) (i32.const 0) (i32.const 512)) (i32.const 57))
    (call $is (call $sock_recv (i32.const 0) (i32.const 32) (i32.const 0) (i32.const 0) (i32.const 512) (i32.const 516)) (i32.const 57))
    (call $is (call $sock_send (i32.const 1) (i32.const 32) (i32.const 0) (i32.const 0) (i32.const 512)) (i32.const 57))
    (call $done))
