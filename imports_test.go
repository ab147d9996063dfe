package singleton_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// otherStores matches what only a store other than Redis needs.
var otherStores = regexp.MustCompile(`(?i)\S*(grpc|etcd|zookeeper|zkstore)\S*`)

// TestProgramOnRedisHasNothingOfOtherStores makes a module that uses this one with Redis, as its user would.
func TestProgramOnRedisHasNothingOfOtherStores(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "election", "scheduler", "store/redisstore")
	for what, text := range p.texts() {
		if found := otherStores.FindAllString(text, -1); found != nil {
			t.Errorf("%s of a program on Redis: %s", what, strings.Join(found, " "))
		}
		if !strings.Contains(text, "github.com/redis/go-redis/v9") {
			t.Errorf("%s does not show what is there:\n%s", what, text)
		}
	}
}

// TestProgramOnZooKeeperShowsIt proves that the test above can fail.
func TestProgramOnZooKeeperShowsIt(t *testing.T) {
	t.Parallel()
	for what, text := range newProgram(t, "election", "store/zkstore").texts() {
		if !otherStores.MatchString(text) {
			t.Errorf("%s of a program on ZooKeeper does not show that:\n%s", what, text)
		}
	}
}

// program is a module that requires this one.
type program struct {
	*testing.T
	dir string
}

// newProgram writes a program that imports packages of this module, tidies its go.mod and builds it.
func newProgram(t *testing.T, packages ...string) program {
	t.Helper()
	const module = "github.com/go-singleton/singleton"
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum") // what is known of the modules need not be asked for
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	source.WriteString("package main\n")
	for _, name := range packages {
		source.WriteString("\nimport _ \"" + module + "/" + name + "\"\n")
	}
	p := program{t, t.TempDir()}
	for name, text := range map[string]string{
		"go.mod":  "module example.org/program\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + here + "\n",
		"go.sum":  string(sums),
		"main.go": source.String() + "\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.run("mod", "tidy")
	p.run("build", "-o", filepath.Join(p.dir, "program"), ".")
	return p
}

// texts are what tells what the program depends on.
func (p program) texts() map[string]string {
	p.Helper()
	texts := map[string]string{"go list -deps": p.run("list", "-deps", ".")}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			p.Fatal(err)
		}
		texts[name], _, _ = strings.Cut(string(text), "\nreplace ") // which names the directory of this checkout
	}
	return texts
}

// run runs go in the program's directory and returns what it prints.
func (p program) run(args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "go", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var diagnosis strings.Builder
	cmd.Stderr = &diagnosis
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, diagnosis.String())
	}
	return string(out)
}
