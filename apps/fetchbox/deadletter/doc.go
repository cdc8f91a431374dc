// Package deadletter publishes the dead letters of FetchBox on a JetStream stream of NATS and reads them again.
//
// The store's event feed is the truth: an Outbox follows it and publishes one DeadLetterTask for each resource that failed for good, in the order of the feed. It
// records the sequence number that the stream gave the message as an event in the story of the resource, in the same transaction as its own position. So a process
// that is killed at any point publishes every dead letter, and each once:
//
//   - a message has an id (Nats-Msg-Id) made of resource and generation, so the stream itself drops a repetition within its duplicate window;
//   - each publish names the sequence number that the stream must be at. If the stream is further, a publish succeeded whose answer was lost: the Outbox finds its
//     message there, however long ago that was.
//
// A stream that was deleted and created again is filled again from the feed, in the same order.
package deadletter
