// Package client works with a Holdfast server over HTTP.
//
//	c, err := client.Dial("http://127.0.0.1:4747", client.Config{Key: key})
//	jobs := c.Store()                                        // a store.Store: enqueue on it, or run an engine on it
//	receipt, err := holdfast.Enqueue(ctx, jobs, Welcome{"ada@example.org"})
//	explanation, err := c.Operator().Explain(ctx, receipt.ID) // an ops.Operator
//
// Client.Store implements [store.Store], so an engine runs on it unchanged; only In, which joins the caller's transaction, needs the database itself.
// Client.Operator implements [ops.Operator]: everything that an operator can ask and do. Callers cannot distinguish them from a local store and a
// local service. Errors wrap the Err variables of package holdfast.
//
// Requests that are safe to repeat are repeated while the server cannot be reached (Config.AbandonAfter).
package client
