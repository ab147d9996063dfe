package redlock

import "github.com/go-singleton/singleton/store"

// connect opens the client's store on the nodes.
func (c *simClient) connect() store.Store {
	var nodes []node
	for _, n := range c.nodes {
		l := &simLink{client: c, to: n, who: c.name + ">" + n.name, back: n.name + ">" + c.name}
		nodes, c.ways = append(nodes, l), append(c.ways, l)
	}
	return fromNodes(nodes, Config{})
}

// disconnect closes the client's store. What it has left under way is not heard of any more.
func (c *simClient) disconnect() {
	c.closed.Store(true)
	for _, l := range c.ways {
		l.closed.Store(true)
	}
	if err := c.store.Close(); err != nil {
		c.fail("%s does not close its store: %v", c.name, err)
	}
}
