package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestALogThatNobodyReadsStopsNothing fills the pipe of the log, or breaks it: ticks go on, and a stop is polite.
func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	for name, broken := range map[string]bool{"full": false, "broken": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ticks := filepath.Join(t.TempDir(), "ticks")
			file := write(t, "jobs.cron", "#: name=loud\n"+
				"* * * * * * head -c 200000 /dev/zero | tr '\\0' x | fold -w 1000; echo $SINGLETON_TICK_UNIX >> "+ticks+"\n")
			binary, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(binary, "cron", "--group", "g", "--seconds", "--store", "memory:", "--lease", "2s", file)
			cmd.Args[0] = "singleton" // see TestMain
			read, log, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd.Stderr = log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			log.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = cmd.Wait() // the exit code says it
			}()
			t.Cleanup(func() {
				_ = cmd.Process.Kill() // one that has ended is no matter
				<-done
			})
			ran := func(n int) func() bool {
				return func() bool {
					text, _ := os.ReadFile(ticks) // not there before the first
					return bytes.Count(text, []byte("\n")) >= n
				}
			}
			until(t, "the first tick runs", ran(1))
			if broken {
				read.Close()
			}
			until(t, "ticks go on", ran(4)) // a pipe holds 64 KiB
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case <-done:
			case <-time.After(patience):
				t.Fatal("the process does not end")
			}
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d (%v)", code, cmd.ProcessState)
			}
		})
	}
}
