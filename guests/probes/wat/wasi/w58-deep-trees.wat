  ;; Directories inside directories until the path or the depth is too long.
  (data (i32.const 4096) "tmp/")
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (memory.copy (i32.const 8192) (i32.const 4096) (i32.const 4))
    (local.set $i (i32.const 3))
    (loop $more
    (i32.store16 (i32.add (i32.const 8192) (local.get $i)) (i32.const 0x612f))
    (local.set $i (i32.add (local.get $i) (i32.const 2)))
    (local.set $j (call $path_create_directory (i32.const 3) (i32.const 8192) (local.get $i)))
    (br_if $more (i32.and (i32.lt_u (local.get $i) (i32.const 4200)) (i32.eqz (local.get $j)))))
    (call $is (local.get $j) (i32.const 37))
    (call $done))
