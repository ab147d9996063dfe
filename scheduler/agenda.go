package scheduler

import "container/heap"

// agenda orders jobs by when the leader has to look at them next.
type agenda []*jobState

// set files a job under j.next, or removes it where that is zero.
func (a *agenda) set(j *jobState) {
	filed := j.index >= 0 && j.index < len(*a) && (*a)[j.index] == j
	switch {
	case j.next.IsZero() && filed:
		heap.Remove(a, j.index)
	case j.next.IsZero():
	case filed:
		heap.Fix(a, j.index)
	default:
		heap.Push(a, j)
	}
}

// first returns the job to look at first, or nil.
func (a *agenda) first() *jobState {
	if len(*a) == 0 {
		return nil
	}
	return (*a)[0]
}

// Len, Less, Swap, Push and Pop are heap.Interface. Equal times are ordered by name, so that a run can be replayed.
func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, k int) bool {
	if !a[i].next.Equal(a[k].next) {
		return a[i].next.Before(a[k].next)
	}
	return a[i].name < a[k].name
}

func (a agenda) Swap(i, k int) {
	a[i], a[k] = a[k], a[i]
	a[i].index, a[k].index = i, k
}

func (a *agenda) Push(x any) {
	j := x.(*jobState)
	j.index = len(*a)
	*a = append(*a, j)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	j := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	j.index = -1
	return j
}
