  ;; Waits until the last moment there is, by the wall clock.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (i64.store (i32.const 4096) (i64.const 42))
    (i32.store8 (i32.const 4104) (i32.const 0))
    (i64.store (i32.const 4120) (i64.const -1))
    (i32.store16 (i32.const 4136) (i32.const 1))
    (drop (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 40)))
    (call $done))
