  ;; Makes files until there may be no more; the last errno says so.
  (data (i32.const 4096) "tmp/w55-")
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (loop $more
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (i32.store8 (i32.const 4104) (i32.add (i32.const 0x61) (i32.and (local.get $i) (i32.const 15))))
    (i32.store8 (i32.const 4105) (i32.add (i32.const 0x61) (i32.and (i32.shr_u (local.get $i) (i32.const 4)) (i32.const 15))))
    (i32.store8 (i32.const 4106) (i32.add (i32.const 0x61) (i32.and (i32.shr_u (local.get $i) (i32.const 8)) (i32.const 15))))
    (local.set $j (call $path_create_directory (i32.const 3) (i32.const 4096) (i32.const 11)))
    (br_if $more (i32.and (i32.lt_u (local.get $i) (i32.const 400)) (i32.eqz (local.get $j)))))
    (call $no (local.get $j))
    (call $done))
