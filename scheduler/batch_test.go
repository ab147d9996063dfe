package scheduler

import (
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/store"
)

func TestBatchIsFullBeforeAStepMayNotFit(t *testing.T) {
	for changes := 1; changes <= stepChanges; changes++ {
		for _, size := range []int{0, 100, stepBytes/changes - 20} {
			var b batch
			for step := 0; !b.full(); step++ {
				for i := range changes {
					b.add(store.Change{Bucket: bucketRun, Key: fmt.Sprint(step, "/", i), Value: make([]byte, size)})
				}
			}
			if len(b.changes) > store.MaxChanges || b.bytes > store.MaxBytes {
				t.Errorf("steps of %d changes of %d bytes: %d changes of %d bytes", changes, size, len(b.changes), b.bytes)
			}
		}
	}
}
