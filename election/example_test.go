package election_test

import (
	"context"
	"fmt"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store/memstore"
)

// The store of a service is one that its replicas share, such as redisstore.New(client, nil).
func Example() {
	elector, err := election.New(memstore.New(), election.Config{Group: "consumer"})
	if err != nil {
		panic(err)
	}
	err = elector.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
		fmt.Println("this replica leads:", term.Valid(), ctx.Err() == nil)
		// Work until ctx ends and return nil; send term.Token() along with what is written.
		return election.ErrStop // for good: Run returns, and another replica leads
	})
	fmt.Println("and has stopped:", err)
	// Output:
	// this replica leads: true true
	// and has stopped: <nil>
}
