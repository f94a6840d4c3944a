  ;; Recursion through a table.
  (type $entry (func (param i32)))
  (table funcref (elem $down))
  (func $down (type $entry) (call_indirect (type $entry) (i32.add (local.get 0) (i32.const 1)) (i32.const 0)) (drop (call $sched_yield)))
  (func (export "_start") (local $i i32) (local $j i32) (local $t i64)
    (call $down (i32.const 0))
    (call $done))
