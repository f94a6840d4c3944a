  ;; Opens until there are no more descriptors; closing one makes room for one.
  (data (i32.const 1024) "dev/null")
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (loop $more
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $more (i32.eqz (call $open (i32.const 1024) (i32.const 8) (i32.const 0) (i64.const 2)))))
    (call $is (call $open (i32.const 1024) (i32.const 8) (i32.const 0) (i64.const 0x2)) (i32.const 33))
    (call $check (i32.lt_u (local.get $i) (i32.const 4096)))
    (call $ok (call $fd_close (i32.const 5)))
    (call $ok (call $open (i32.const 1024) (i32.const 8) (i32.const 0) (i64.const 0x2)))
    (call $is (call $fd) (i32.const 5))
    (call $is (call $open (i32.const 1024) (i32.const 8) (i32.const 0) (i64.const 0x2)) (i32.const 33))
    (call $done))
