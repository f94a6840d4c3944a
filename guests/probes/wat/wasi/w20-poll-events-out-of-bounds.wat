  ;; Events and counts that do not fit the memory.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (i64.store (i32.const 4096) (i64.const 42))
    (i32.store8 (i32.const 4104) (i32.const 0))
    (i32.store16 (i32.const 4136) (i32.const 1))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 131060) (i32.const 1) (i32.const 40)) (i32.const 21))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 0xfffffff0) (i32.const 1) (i32.const 40)) (i32.const 21))
    (call $is (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 131070)) (i32.const 21))
    (call $done))
