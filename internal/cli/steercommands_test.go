package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-singleton/singleton/store"
)

// A job that may overlap can have thousands of open runs: the error stays one that can be read.
func TestCancelNamesAFewOfTheOpenRuns(t *testing.T) {
	for _, c := range []struct{ ids, want string }{
		{"a b", "a, b"},
		{"a b c d e", "a, b, c, d, e"},
		{"a b c d e f g", "a, b, c, d, e, and 2 more"},
	} {
		if got := enumerate(strings.Fields(c.ids)); got != c.want {
			t.Errorf("%s: %s", c.ids, got)
		}
	}
}

func TestFullInboxSaysWhatToDo(t *testing.T) {
	err := asked(nil, fmt.Errorf("scheduler: trigger: %w", store.ErrFull), "billing")
	if err == nil || !strings.Contains(err.Error(), "not asked: 10000 messages wait") || !strings.Contains(err.Error(), hint("billing")) {
		t.Errorf("got %v", err)
	}
}
