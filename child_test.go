//go:build unix

package singleton_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// orderVariable makes this test binary a replica: its value is an order.
const orderVariable = "SINGLETON_TEST_ORDER"

// order is what a test wants of a replica in a process of its own. It ends with its standard input.
type order struct {
	Elector   bool // else a scheduler
	Addr      string
	Group, ID string
	Lease     time.Duration
	Rerun     bool
	Fails     bool // the job fails at once, and is retried
	Manual    bool // the job has no ticks, and only its first attempt works until its context ends
	Triggers  int  // how many runs to ask for, instead of all that
}

// obey is the main function of such a process.
func obey(text string) int {
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		client := redis.NewClient(&redis.Options{Addr: o.Addr})
		st := redisstore.New(client, nil)
		switch {
		case o.Elector:
			err = o.campaign(client, st)
		case o.Triggers > 0:
			err = o.trigger(st)
		default:
			err = o.schedule(st)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// campaign says when it leads, and then answers one line with another, always about its first term.
func (o order) campaign(client *redis.Client, st store.Store) error {
	e, err := election.New(st, election.Config{Group: o.Group, ID: o.ID, Lease: o.Lease})
	if err != nil {
		return err
	}
	calls := make(chan *call, 1000)
	go func() {
		_ = e.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
			c := &call{Term: term, ctx: ctx}
			calls <- c
			return untilEnd(c)
		})
	}()
	c := <-calls
	fmt.Println("leads", c.Token())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "effect":
			if !c.Valid() {
				fmt.Println("no effect:", context.Cause(c.ctx) != nil)
				break
			}
			if err := client.Incr(context.Background(), "effects").Err(); err != nil {
				return err
			}
			fmt.Println("effect")
		case "commit":
			fmt.Println(st.Commit(context.Background(), c.Lease(), 1, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}}))
		}
	}
	return nil
}

// schedule runs an every-second job that says that it has started and works until its context ends.
func (o order) schedule(st store.Store) error {
	s, err := scheduler.New(st, scheduler.Config{Group: o.Group, ID: o.ID, Lease: o.Lease, Seconds: true})
	if err != nil {
		return err
	}
	job := scheduler.Job{Name: "long", Spec: "* * * * * *", Do: func(ctx context.Context, run scheduler.Run) error {
		fmt.Println(run.ID())
		switch {
		case o.Fails:
			return errors.New("not yet")
		case o.Manual && run.Attempt > 1:
			return nil
		}
		<-ctx.Done()
		return nil
	}}
	if o.Manual {
		job.Spec = "0 0 0 1 1 *"
	}
	if o.Rerun {
		job.OnInterrupt = scheduler.InterruptRerun
	}
	if o.Fails {
		job.Retry = failing
	}
	if err := s.Add(job); err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- s.Run(ctx) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	return <-ended
}

// child is a process that obeys an order.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // that it has written; closed when it has ended
}

func (g *group) child(o order) *child {
	g.t.Helper()
	o.Addr, o.Group, o.Lease = g.server.Addr(), g.name, lease
	text, err := json.Marshal(o)
	if err != nil {
		g.t.Fatal(err)
	}
	c := &child{t: g.t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	c.cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	c.cmd.Stderr = g.t.Output()
	// In a process group of its own: when this process dies while the child is stopped, the kernel hangs the group up.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		g.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		_ = c.cmd.Wait() // says how it was killed
		close(c.lines)
	}()
	g.t.Cleanup(c.kill)
	return c
}

func (c *child) signal(sig syscall.Signal) { _ = c.cmd.Process.Signal(sig) }

// kill ends the process as a crash does.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	for range c.lines {
		continue
	}
}

func (c *child) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Error(err)
	}
}

func (c *child) hear() string {
	c.t.Helper()
	return receive(c.t, c.lines, "a line of the other process")
}

func (c *child) expect(want string) {
	c.t.Helper()
	if got := c.hear(); got != want {
		c.t.Errorf("the other process says %q, want %q", got, want)
	}
}

func TestB18LeaderIsStoppedPastItsLeaseAndResumed(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	c := g.child(order{Elector: true, ID: "a"})
	leads := c.hear()
	c.say("effect")
	c.expect("effect")
	g.start(g.store(g.server.Addr()), election.Config{ID: "b"}, untilEnd)
	c.signal(syscall.SIGSTOP)
	next := g.next() // b: the child is stopped
	if before := "leads " + fmt.Sprint(next.Token()); before <= leads {
		t.Errorf("token %d after %q", next.Token(), leads)
	}
	c.say("effect") // it stands there when the process goes on, before any timer has run
	c.say("commit")
	c.signal(syscall.SIGCONT)
	c.expect("no effect: true") // and the context had ended
	c.expect(store.ErrLost.Error())
	if n := g.admin.Get(t.Context(), "effects").Val(); n != "1" {
		t.Errorf("%s effects, want that of before the stop", n)
	}
	if !next.Valid() {
		t.Error("the new leader was disturbed")
	}
}
