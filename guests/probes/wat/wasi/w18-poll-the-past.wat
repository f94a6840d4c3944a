  ;; A moment in the past is now.
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (i64.store (i32.const 4096) (i64.const 42))
    (i32.store8 (i32.const 4104) (i32.const 0))
    (i32.store16 (i32.const 4136) (i32.const 1))
    (call $ok (call $poll_oneoff (i32.const 4096) (i32.const 8192) (i32.const 1) (i32.const 40)))
    (call $is (call $moved) (i32.const 1))
    (call $check (i64.eq (i64.load (i32.const 8192)) (i64.const 42)))
    (call $is (i32.load16_u (i32.const 8200)) (i32.const 0))
    ;; what is not used of an event is zero
    (call $check (i64.eqz (i64.load (i32.const 8208))))
    (call $check (i64.eqz (i64.load (i32.const 8216))))
    (call $done))
