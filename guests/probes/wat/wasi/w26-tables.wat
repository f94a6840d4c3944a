  ;; Tables that would be larger than any memory.
  (table $open-ended 1 funcref)
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $is (table.grow $open-ended (ref.null func) (i32.const 0x40000000)) (i32.const -1))
    (loop $more
      (br_if $more (i32.ne (table.grow $open-ended (ref.null func) (i32.const 1000)) (i32.const -1))))
    (call $check (i32.lt_u (table.size $open-ended) (i32.const 0x10000000)))
    (call $done))
