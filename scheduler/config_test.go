package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store/memstore"
)

func TestNewReportsAllProblemsOfAConfig(t *testing.T) {
	_, err := New(memstore.New(), Config{Group: "a/b", Grace: -1, History: 10_001, MaxRunning: -1, Zone: time.Local, Lease: 1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"group", "grace", "history", "max running", "time.Local", "lease"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say what is wrong with %s:\n%v", want, err)
		}
	}
}
