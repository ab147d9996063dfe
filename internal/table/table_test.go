//go:build unix

package table

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func kinds() []Kind {
	return slices.Concat(single(), sentinelKinds(), clusterKinds(), zookeeperKinds(), redlockKinds())
}

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which tells of each dial that failed
	Obey(kinds()...)
	goleak.VerifyTestMain(m,
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func TestTable(t *testing.T) {
	t.Parallel()
	Run(t, kinds()...)
}

// TestWhatAcknowledgementKeeps is the hazard of asynchronous replicas, and the same fault with acknowledgement.
func TestWhatAcknowledgementKeeps(t *testing.T) {
	t.Parallel()
	plain, acknowledged := sentinelKinds()[0], sentinelKinds()[1]
	t.Run(plain.Name, func(t *testing.T) {
		t.Parallel()
		if leases, claims := Lost(t, plain, asynchronous); leases == 0 || claims == 0 {
			t.Errorf("%d leases and %d claims were forgotten: the fault has shown nothing", leases, claims)
		}
	})
	t.Run(acknowledged.Name, func(t *testing.T) {
		t.Parallel()
		if leases, claims := Lost(t, acknowledged, asynchronous); leases+claims > 0 {
			t.Errorf("%d leases and %d claims were forgotten", leases, claims)
		}
	})
}
