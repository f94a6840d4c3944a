  ;; Only the root directory is there from the start.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $is (call $fd_prestat_get (i32.const 4) (i32.const 4096)) (i32.const 8))
    (call $is (call $fd_prestat_get (i32.const 0xffffffff) (i32.const 4096)) (i32.const 8))
    (call $is (call $fd_prestat_dir_name (i32.const 4) (i32.const 4096) (i32.const 10)) (i32.const 8))
    (call $is (call $fd_prestat_dir_name (i32.const 3) (i32.const 4096) (i32.const 0)) (i32.const 37))
    (call $is (call $fd_prestat_dir_name (i32.const 3) (i32.const 0xffffffff) (i32.const 1)) (i32.const 21))
    (call $is (call $fd_prestat_get (i32.const 3) (i32.const 0xfffffffe)) (i32.const 21))
    (call $done))
