package histories

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	first  = flag.Uint64("seed", 1, "the first seed")
	seeds  = flag.Uint64("seeds", 4, "how many seeds")
	length = flag.Duration("for", 3*time.Second, "how long the history of each seed is")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// TestFencedHistoriesAreLinearizable holds the Redis store against the object of the package documentation (E3, S1).
func TestFencedHistoriesAreLinearizable(t *testing.T) {
	Judge(t, *first, *seeds, *length, onRedis, 150*time.Millisecond)
}

// TestFencedHistoriesOfZooKeeperAreLinearizable holds the ZooKeeper store against the same object.
func TestFencedHistoriesOfZooKeeperAreLinearizable(t *testing.T) {
	Judge(t, *first, (*seeds+3)/4, *length, onZooKeeper, 350*time.Millisecond)
}
