package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/zkstore"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// TestScripts runs the scripts of testdata/script, one for each command: its help, its --json and its errors, word for word.
// After a change that is meant, run it with -update and look at what differs.
func TestScripts(t *testing.T) {
	runScripts(t, testscript.Params{Dir: scripts, UpdateScripts: *update}, startRedis)
}

// TestScriptsOnZooKeeper runs those that ask for a store, whichever it is.
func TestScriptsOnZooKeeper(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(scripts, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nstore\n") {
			files = append(files, name)
		}
	}
	if len(files) < 8 {
		t.Fatalf("only %q ask for a store", files)
	}
	server := zktest.Start(t)
	runScripts(t, testscript.Params{Files: files}, func(ts *testscript.TestScript, _ bool, _ []string) {
		c := zkstore.Config{Servers: []string{server.Addr()}, Chroot: "/" + filepath.Base(ts.Getenv("WORK"))}
		ts.Setenv("SINGLETON_STORE", "zk://"+server.Addr()+c.Chroot)
		found(ts, zkstore.New(c))
	})
}

const scripts = "testdata/script"

// runScripts runs scripts. Their command "store" starts the store that their commands use from then on, and "redis" a Redis.
func runScripts(t *testing.T, params testscript.Params, start func(*testscript.TestScript, bool, []string)) {
	program := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(program, "singleton")); err != nil {
		t.Fatal(err)
	}
	params.RequireExplicitExec = true
	params.Setup = func(env *testscript.Env) error {
		env.Vars = append(env.Vars,
			"PATH="+program+string(os.PathListSeparator)+os.Getenv("PATH"), "TZ=Europe/Berlin", "SINGLETON_AUTHOR=ann@laptop")
		return nil
	}
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"store":  start,
		"redis":  startRedis,
		"await":  await,
		"stable": stable,
		"exits":  exits,
	}
	testscript.Run(t, params)
}

// TestEveryCommandHasAScript keeps the scripts complete.
func TestEveryCommandHasAScript(t *testing.T) {
	for _, cmd := range new(app).newRootCommand().Commands() {
		name := filepath.Join("testdata", "script", cmd.Name()+".txtar")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%s needs a script of its help, --json and errors: %v", cmd.Name(), err)
		}
		if !strings.Contains(string(text), "exec singleton "+cmd.Name()+" --help") {
			t.Errorf("%s does not print the help", name)
		}
	}
}

// startRedis starts a server that ends with the script.
func startRedis(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := redistest.New(redistest.Config{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Close()) })
	ts.Setenv("SINGLETON_STORE", s.URL())
	found(ts, redisstore.New(s.Client(), nil))
}

// found gives the group "g" a ledger, so that its first leader does not wait for those who remember one, and closes st.
func found(ts *testscript.TestScript, st store.Store) {
	ts.Check(errors.Join(scheduler.Create(context.Background(), st, "g"), st.Close()))
}

// awaitLimit is how long a script waits for what must come.
const awaitLimit = 30 * time.Second

// await runs a command again and again until its standard output matches: await REGEXP COMMAND...
func await(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await REGEXP COMMAND...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); time.Since(began) < awaitLimit; <-again.C {
		_ = ts.Exec(args[1], args[2:]...) // the exit code is not what is waited for
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("waited %v in vain for %s", awaitLimit, args[0])
}

// exits runs a command that must exit with a code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// stableParts are the parts of an output that are others each time, and what stands for them.
var stableParts = []struct {
	part *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\bm1-[0-9a-f]{8}\b`), "m1-XXXXXXXX"},
	{regexp.MustCompile(`"token":\d+`), `"token":N`},
	{regexp.MustCompile(`"(\w+_seconds)":[0-9.e-]+`), `"$1":S`},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (s|ms)\b`), "N s"},
}

// stable writes the standard output of the last command, with what is another each time replaced, into a file: stable FILE.
func stable(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: stable FILE")
	}
	text := ts.ReadFile("stdout")
	for _, p := range stableParts {
		text = p.part.ReplaceAllString(text, p.text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
