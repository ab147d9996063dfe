//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/redis/go-redis/v9"
)

const storeVariable = "FENCING_STORE"

// How the lines begin that the tale waits for.
const (
	checked = "asks Valid(): true"
	written = "asks Valid() again:"
)

// replica leads when it can, and writes once in each term that it leads.
func replica(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("replica is for this program's own use")
	}
	name, group, service := args[0], args[1], args[2]
	lease, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	opts, err := redis.ParseURL(os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer client.Close()
	elector, err := election.New(redisstore.New(client, nil), election.Config{Group: group, ID: name, Lease: lease})
	if err != nil {
		return err
	}
	orders := bufio.NewReader(os.Stdin)
	return elector.Run(ctx, func(ctx context.Context, term *election.Term) error {
		fmt.Printf("leads with token %d\n", term.Token())
		if !term.Valid() { // catches most pauses, and costs nothing
			return context.Cause(ctx)
		}
		fmt.Println(checked + ", so that the next line of its code writes")

		// Between the check and the write a process can be stopped for any time. This one waits here to be.
		if _, err := orders.ReadString('\n'); err != nil {
			return election.ErrStop // nobody tells the tale any more
		}

		late := context.WithoutCancel(ctx) // what is on its way already knows of no context
		bill := bill{client, group}
		fmt.Println("writes to Redis:", outcome(bill.pay(late, term.Token(), name)))
		fmt.Println("writes to the service:", outcome(post(late, service, term.Token(), name)))
		fmt.Println("writes to the plain key:", outcome(bill.payUnguarded(late, name)))
		fmt.Printf("%s %v\n", written, term.Valid())
		_, _ = io.ReadAll(orders) // leads on until the tale is over
		return election.ErrStop
	})
}

// errFenced says that a write was refused because a newer leader has written.
var errFenced = errors.New("a newer leader has written")

func outcome(err error) string {
	if err != nil {
		return "REFUSED: " + err.Error()
	}
	return "taken"
}
