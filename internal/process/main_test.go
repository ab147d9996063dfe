//go:build unix

package process_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/process"
)

// parent is the variable that makes the test program a process that launches another and waits for its own death; its
// value is the FIFO that the other holds open.
const parent = "PROCESS_TEST_PARENT"

// orphan launches a process and waits to be killed.
func orphan() {
	var p process.Process
	if err := p.Launch(process.Command{Args: []string{"sh", "-c", `exec >"$` + parent + `"; echo up; exec sleep 1000`}}); err != nil {
		panic(err)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestMain(m *testing.M) {
	if os.Getenv(parent) != "" {
		orphan()
		return
	}
	goleak.VerifyTestMain(m)
}
