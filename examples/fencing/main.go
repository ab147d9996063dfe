//go:build unix

// Command fencing freezes a leader between its last look at Valid and its write, for longer than its lease, and thaws it
// when another one leads. A Redis script and an HTTP service that check the token refuse what it then writes; a plain key
// takes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // go-redis's own lines
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "replica" { // started by show
		err = replica(ctx, os.Args[2:])
	} else {
		url := flag.String("store", "", "`URL` of a Redis (default one inside of this program)")
		flag.Parse()
		err = show(ctx, os.Stdout, *url, 2*time.Second)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

// show tells the story of two replicas, a and b, and returns an error unless it ends well.
func show(ctx context.Context, out io.Writer, url string, lease time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	where := "the Redis of --store"
	if url == "" {
		embedded := miniredis.NewMiniRedis()
		embedded.ClockTTL(true)
		if err := embedded.StartAddr("127.0.0.1:0"); err != nil {
			return err
		}
		defer embedded.Close()
		url, where = "redis://"+embedded.Addr(), "a Redis inside of this program"
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return errors.New("--store is not the URL of a Redis") // its error may repeat a password
	}
	client := redis.NewClient(opts)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil { // replicas would go on asking
		return fmt.Errorf("the Redis of --store cannot be asked: %w", err)
	}
	bill := bill{client, "fencing-" + uuid.NewString()[:8]}
	defer bill.remove()

	service := &service{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Second}
	serving := make(chan struct{})
	go func() { defer close(serving); _ = server.Serve(listener) }()
	defer func() { _ = server.Close(); <-serving }()

	t := tale{out, time.Now()}
	fmt.Fprintf(out, "Two replicas, a and b, lease %v, %s, a service on %s\n\n", lease, where, listener.Addr())
	start := func(name string) (*actor, error) {
		return t.start(ctx, name, url, bill.group, "http://"+listener.Addr().String(), lease.String())
	}
	a, err := start("a")
	if err != nil {
		return err
	}
	defer a.end()
	if err := a.until(checked); err != nil {
		return err
	}
	b, err := start("b")
	if err != nil {
		return err
	}
	defer b.end()

	a.signal(syscall.SIGSTOP)
	t.tell("-", "a is FROZEN (SIGSTOP) right there, as a machine can be that is moved or out of memory")
	if err := b.until(checked); err != nil { // when the lease of a has ended
		return err
	}
	b.proceed()
	if err := b.until(written); err != nil {
		return err
	}
	a.proceed()
	t.tell("-", "a is thawed (SIGCONT) and goes on with its next line")
	a.signal(syscall.SIGCONT)
	if err := a.until(written); err != nil {
		return err
	}

	guarded, plain, err := bill.paidBy(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nWho has written last?  Redis, checking the token: %s   the service, checking the token: %s   the plain key: %s\n",
		guarded, service.paidBy(), plain)
	if guarded != "b" || service.paidBy() != "b" || plain != "a" {
		return errors.New("that should be b, b and a")
	}
	fmt.Fprintln(out, "Whatever checks the token is safe from a leader of the past. The plain key has lost what b wrote.")
	return nil
}
