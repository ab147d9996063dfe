package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// simDigest says in short what a node has answered.
func simDigest(v any) string {
	switch v := v.(type) {
	case claimed:
		text := [...]string{"?", "granted", "held", "lost", "ended"}[v.Outcome] + " after " + simToken(v.Counter)
		if v.Unsure {
			text += " or more"
		}
		if v.Token > 0 {
			text += ", token " + simToken(v.Token)
		}
		if v.Holder.Replica != "" {
			text += " by " + v.Holder.Replica
		}
		return text
	case simSettled:
		return strconv.FormatBool(v.done)
	case renewed:
		return [...]string{"?", "done", "lost", "ended", "outrun"}[v.Outcome]
	case holder:
		return v.Replica + " " + simToken(v.Token)
	case simJoined:
		return v.left.String()
	case simReplicas:
		return strconv.Itoa(len(v.all)) + " replicas"
	case report:
		return simHead(v)
	case written:
		return [...]string{"?", "done", "lost", "behind", "nothing"}[v.Effect] + ", " + simHead(v.report)
	case simBucketList:
		return strconv.Itoa(len(v.names)) + " buckets, " + simHead(v.report)
	case page:
		var text strings.Builder
		text.WriteString(strconv.Itoa(len(v.Keys)) + " keys")
		for i, value := range v.Values {
			if i < 3 {
				text.WriteString(" " + string(value))
			}
		}
		return text.String() + ", " + simHead(v.report)
	case bool:
		return strconv.FormatBool(v)
	case identity:
		return v.Run
	}
	return "done"
}

func simHead(r report) string {
	held := ""
	if r.Held {
		held = ", held"
	}
	return "state " + simPoint(r.Head.At) + " on " + simPoint(r.Head.Base) + " of " + r.Marker + held
}

func simPoint(p point) string { return simToken(p.Token) + "/" + strconv.FormatUint(p.Number, 10) }

// simToken shortens a token: they are microseconds since 1970, and a bubble's time begins in 2000.
func simToken(token uint64) string {
	begin := uint64(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	if token < begin {
		return strconv.FormatUint(token, 10)
	}
	return fmt.Sprintf("+%.6f", float64(token-begin)/1e6)
}
