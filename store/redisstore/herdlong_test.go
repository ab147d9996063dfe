//go:build long

package redisstore_test

import "testing"

func TestAThousandElectionsOfOneProcessLoseNoLeaseWhenOneCallInFiveFails(t *testing.T) {
	loseNoLease(t, 1000, 5000)
}
