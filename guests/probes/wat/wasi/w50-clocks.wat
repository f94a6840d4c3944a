  ;; Clocks that do not exist, and one that never goes back.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $is (call $clock_time_get (i32.const 4) (i64.const 0) (i32.const 4096)) (i32.const 28))
    (call $is (call $clock_time_get (i32.const 0xffffffff) (i64.const 0) (i32.const 4096)) (i32.const 28))
    (call $is (call $clock_res_get (i32.const 99) (i32.const 4096)) (i32.const 28))
    (call $ok (call $clock_res_get (i32.const 0) (i32.const 4096)))
    (call $ok (call $clock_time_get (i32.const 1) (i64.const -1) (i32.const 4096)))
    (local.set $t (i64.load (i32.const 4096)))
    (loop $again
    (call $ok (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 4096)))
    (call $check (i64.ge_u (i64.load (i32.const 4096)) (local.get $t)))
    (local.set $t (i64.load (i32.const 4096)))
    (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (call $done))
