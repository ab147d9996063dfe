// Package program builds the command line once for a package's tests, which start it as processes.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run builds singleton, puts its path into binary, runs the tests of m and returns the exit code: for a TestMain.
func Run(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "singleton-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*binary = filepath.Join(dir, "singleton")
	build := exec.Command("go", "build", "-o", *binary, "github.com/go-singleton/singleton/cmd/singleton")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
