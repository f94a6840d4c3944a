  ;; Writes until the disk is full; the last errno says so, and reading still works.
  (data (i32.const 1024) "tmp/w56")
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $create (i32.const 1024) (i32.const 7))
    (loop $more
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (local.set $j (call $write (call $fd) (i32.const 0) (i32.const 65536)))
    (br_if $more (i32.and (i32.lt_u (local.get $i) (i32.const 4000)) (i32.eqz (local.get $j)))))
    (call $no (local.get $j))
    (call $ok (call $fd_seek (call $fd) (i64.const 0) (i32.const 0) (i32.const 48)))
    (call $ok (call $read (call $fd) (i32.const 8192) (i32.const 100)))
    (call $done))
