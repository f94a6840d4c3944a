  ;; Waits for the longest span there is.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (i64.store (i32.const 4096) (i64.const 42))
    (i32.store8 (i32.const 4104) (i32.const 0))
    (i32.store (i32.const 4112) (i32.const 1))
    (i64.store (i32.const 4120) (i64.const -1))
    (drop (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 40)))
    (call $done))
