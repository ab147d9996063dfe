package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

func (n *redisNode) acquire(ctx context.Context, group string, c claim) (claimed, error) {
	r, err := n.run(ctx, acquireScript, n.keys(group), c.ID, c.Nonce, c.Attempt, c.TTL.Milliseconds(), c.Session.Milliseconds(), c.Start, c.Info)
	if err != nil {
		return claimed{}, err
	}
	s, err := r.stamp()
	if err != nil {
		return claimed{}, err
	}
	got := claimed{stamp: s}
	switch r.word {
	case "granted":
		got.Outcome = claimGranted
		if got.Token, err = r.number(stampFields); err == nil {
			got.Counter, err = r.number(stampFields + 1)
			got.Unsure = r.text(stampFields+2) != s.Run
		}
	case "held":
		got.Outcome = claimHeld
		got.Holder, err = n.holder(group, r, stampFields)
	case "lost":
		got.Outcome = claimLost
	case "ended":
		got.Outcome = claimEnded
	default:
		err = errStrange
	}
	return got, err
}

func (n *redisNode) settle(ctx context.Context, l store.Lease, attempt string) (bool, stamp, error) {
	r, err := n.run(ctx, settleScript, n.keys(l.Group), l.Replica, l.Nonce, attempt, token(l))
	if err != nil {
		return false, stamp{}, err
	}
	s, err := r.stamp()
	return r.word == "ok", s, err
}

func (n *redisNode) renew(ctx context.Context, l store.Lease, vouch bool) (renewed, error) {
	r, err := n.run(ctx, renewScript, n.keys(l.Group), token(l), l.Replica, l.Nonce, l.TTL.Milliseconds(), vouch)
	return readRenewal(r, err)
}

func (n *redisNode) repair(ctx context.Context, l store.Lease, info []byte, vouch bool) (renewed, error) {
	r, err := n.run(ctx, repairScript, n.keys(l.Group), token(l), l.Replica, l.Nonce, l.TTL.Milliseconds(), info, vouch)
	return readRenewal(r, err)
}

func readRenewal(r reply, err error) (renewed, error) {
	if err != nil {
		return renewed{}, err
	}
	outcomes := map[string]renewal{"done": renewDone, "lost": renewLost, "ended": renewEnded, "outrun": renewOutrun}
	s, err := r.stamp()
	if err == nil && outcomes[r.word] == 0 {
		err = errStrange
	}
	return renewed{s, outcomes[r.word]}, err
}

func (n *redisNode) release(ctx context.Context, l store.Lease, event string) error {
	return n.withdraw(ctx, l, "", event)
}

func (n *redisNode) withdraw(ctx context.Context, l store.Lease, attempt, event string) error {
	_, err := n.run(ctx, releaseScript, n.keys(l.Group), l.Replica, l.Nonce, attempt, refusedBytes, n.channel(l.Group, store.LeaseFree), event)
	return err
}

func (n *redisNode) leader(ctx context.Context, group string) (holder, error) {
	r, err := n.run(ctx, leaderScript, n.keys(group))
	if err != nil || r.word == "none" {
		return holder{}, err
	}
	return n.holder(group, r, 0)
}

// holder reads a lease's value and remaining milliseconds, and trusts neither: anyone who may write there could have.
func (n *redisNode) holder(group string, r reply, i int) (holder, error) {
	parts := strings.Split(r.text(i), " ")
	if len(parts) != 4 {
		return holder{}, n.foreign(n.key(group, "lease"), errors.New("it is no lease"))
	}
	token, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil || token > store.MaxToken {
		return holder{}, n.foreign(n.key(group, "lease"), errors.New("a lease with an impossible token"))
	}
	if err := store.CheckName("replica", parts[1]); err != nil {
		return holder{}, n.foreign(n.key(group, "lease"), err)
	}
	left, err := r.milliseconds(i + 1)
	if err != nil {
		return holder{}, err
	}
	if left < 0 {
		return holder{}, n.foreign(n.key(group, "lease"), errors.New("a lease that never ends"))
	}
	return holder{Replica: parts[1], Attempt: strings.TrimPrefix(parts[3], "-"), Token: token, Remaining: left}, nil
}

func (n *redisNode) join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, stamp, error) {
	got, err := n.run(ctx, joinScript, n.keys(group), r.ID, ttl.Milliseconds(), start, r.Info)
	if err != nil {
		return 0, stamp{}, err
	}
	s, err := got.stamp()
	if err != nil || got.word == "ended" {
		return 0, s, err
	}
	left, err := got.milliseconds(stampFields)
	return left, s, err
}

func (n *redisNode) leave(ctx context.Context, group, replicaID string) error {
	_, err := n.run(ctx, leaveScript, n.keys(group), replicaID)
	return err
}

func (n *redisNode) replicas(ctx context.Context, group string) ([]store.Replica, stamp, error) {
	r, err := n.run(ctx, replicasScript, n.keys(group))
	if err != nil {
		return nil, stamp{}, err
	}
	s, err := r.stamp()
	if err != nil {
		return nil, s, err
	}
	ids, infos := r.list(stampFields), r.list(stampFields+1)
	if len(ids) != len(infos) {
		return nil, s, fmt.Errorf("%d sessions and %d infos: %w", len(ids), len(infos), errStrange)
	}
	var list []store.Replica
	for i := range ids {
		id, _ := ids[i].(string)
		info, _ := infos[i].(string)
		if err := store.CheckName("replica", id); err != nil {
			return nil, s, n.foreign(n.key(group, "sessions"), err)
		}
		replica := store.Replica{ID: id}
		if info != "" {
			replica.Info = []byte(info)
		}
		list = append(list, replica)
	}
	return list, s, nil
}

func token(l store.Lease) string { return strconv.FormatUint(l.Token, 10) }
