package deadletter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter/pb"
	"github.com/holdfastdev/holdfast/apps/internal/stream"
)

// The stream and its only subject.
const (
	StreamName = "FETCHBOX_DLQ"
	Subject    = "jobs.dlq"
)

const (
	contentType  = "application/protobuf; messageType=fetchbox.v1.DeadLetterTask"
	duplicates   = 10 * time.Minute
	wrongLastSeq = 10071 // JetStream's code: the last sequence of the stream is not the expected one
)

// ErrNotFound is the answer for a sequence number without a dead letter: it is beyond the end, or the stream's limits removed it.
var ErrNotFound = errors.New("the stream has no dead letter with this sequence number")

// errOther says that the stream is not at the sequence number at which the caller expected it.
var errOther = errors.New("the stream has messages that this process did not expect")

// A Stream is a connection to the stream of dead letters. It is safe for concurrent use. The connection is made by the first call that needs it and reconnects by
// itself; a call while the server cannot be reached returns an error.
type Stream struct {
	conn *nats.Conn
	js   jetstream.JetStream
	keep time.Duration
}

// Connect returns the stream on the servers at an address. It does not wait for servers that are down. The stream is created when it is first needed; keep is how
// long it keeps a message, 0 for ever.
func Connect(url string, keep time.Duration, options ...nats.Option) (*Stream, error) {
	conn, js, err := stream.Connect("fetchbox", url, options...)
	if err != nil {
		return nil, err
	}
	return &Stream{conn: conn, js: js, keep: keep}, nil
}

// Close ends the connection.
func (s *Stream) Close() { s.conn.Close() }

// A Position is where the stream is.
type Position struct {
	Created time.Time // when the stream was created: it tells a stream from one that has taken its place
	First   uint64    // sequence number of the oldest dead letter that it has; 0 if it has none
	Last    uint64    // sequence number of the newest dead letter; 0 if it never had one
	Letters uint64
}

// Position returns where the stream is. It creates the stream if there is none.
func (s *Stream) Position(ctx context.Context) (Position, error) {
	stream, err := s.stream(ctx)
	if err != nil {
		return Position{}, err
	}
	info := stream.CachedInfo()
	return Position{Created: info.Created.UTC(), First: info.State.FirstSeq, Last: info.State.LastSeq, Letters: info.State.Msgs}, nil
}

func (s *Stream) stream(ctx context.Context) (jetstream.Stream, error) {
	if err := stream.Connected(s.conn); err != nil {
		return nil, err
	}
	stream, err := s.js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: StreamName, Description: "dead letters of FetchBox", Subjects: []string{Subject}, Storage: jetstream.FileStorage,
			Duplicates: duplicates, MaxAge: s.keep, AllowDirect: true,
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process has just created it
			stream, err = s.js.Stream(ctx, StreamName)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the stream %s cannot be read or created: %w", StreamName, err)
	}
	return stream, nil
}

// publish appends a dead letter to the stream, which must be at the sequence number after, and returns its own. If the stream has the message already, it returns
// that one's number. errOther means that the stream is elsewhere and does not have the message.
func (s *Stream) publish(ctx context.Context, id string, letter *pb.DeadLetterTask, after uint64) (uint64, error) {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(letter)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(Subject)
	m.Data = body
	m.Header.Set("Content-Type", contentType)
	m.Header.Set("Fetchbox-Code", letter.GetFailureCode())
	confirmed, err := s.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(StreamName), jetstream.WithExpectLastSequence(after), jetstream.WithRetryAttempts(0))
	if err == nil {
		return confirmed.Sequence, nil
	}
	var answer *jetstream.APIError
	if !errors.As(err, &answer) || answer.ErrorCode != wrongLastSeq {
		return 0, fmt.Errorf("the stream has not confirmed a dead letter: %w", err)
	}
	return s.find(ctx, id, after)
}

// find searches the messages after a sequence number for one by its id.
func (s *Stream) find(ctx context.Context, id string, after uint64) (uint64, error) {
	stream, err := s.stream(ctx)
	if err != nil {
		return 0, err
	}
	for seq := after + 1; ; {
		m, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(Subject))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return 0, errOther
		case err != nil:
			return 0, fmt.Errorf("the stream cannot be read: %w", err)
		case m.Header.Get(nats.MsgIdHdr) == id:
			return m.Sequence, nil
		}
		seq = m.Sequence + 1
	}
}

// A Letter is a dead letter in the stream.
type Letter struct {
	Sequence uint64
	*pb.DeadLetterTask
}

// FailedAt returns when the resource failed.
func (l Letter) FailedAt() time.Time { return time.UnixMilli(l.GetFailedAtMs()).UTC() }

// Host returns the host of the resource's address.
func (l Letter) Host() string { return l.GetMetadata()[MetadataHost] }

// Get returns the dead letter with a sequence number, or ErrNotFound.
func (s *Stream) Get(ctx context.Context, seq uint64) (Letter, error) {
	stream, err := s.stream(ctx)
	if err != nil {
		return Letter{}, err
	}
	m, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Letter{}, fmt.Errorf("%w: %d", ErrNotFound, seq)
	}
	if err != nil {
		return Letter{}, fmt.Errorf("the stream cannot be read: %w", err)
	}
	return decode(m)
}

// From returns the dead letters from a sequence number on, in order, up to the end of the stream.
func (s *Stream) From(ctx context.Context, seq uint64) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		stream, err := s.stream(ctx)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		for seq := max(seq, 1); ; seq++ {
			m, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(Subject)) // the first one at or after this number
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(Letter{}, fmt.Errorf("the stream cannot be read: %w", err))
				return
			}
			letter, err := decode(m)
			if !yield(letter, err) || err != nil {
				return
			}
			seq = m.Sequence
		}
	}
}

// Newest returns up to limit dead letters before a sequence number, the newest first; with 0, the newest of all.
func (s *Stream) Newest(ctx context.Context, before uint64, limit int) ([]Letter, error) {
	at, err := s.Position(ctx)
	if err != nil {
		return nil, err
	}
	seq := at.Last
	if before > 0 {
		seq = min(seq, before-1)
	}
	var letters []Letter
	for ; seq >= max(at.First, 1) && len(letters) < limit; seq-- {
		letter, err := s.Get(ctx, seq)
		if errors.Is(err, ErrNotFound) {
			continue // an operator deleted this message
		}
		if err != nil {
			return letters, err
		}
		letters = append(letters, letter)
	}
	return letters, nil
}

func decode(m *jetstream.RawStreamMsg) (Letter, error) {
	letter := Letter{m.Sequence, &pb.DeadLetterTask{}}
	if err := proto.Unmarshal(m.Data, letter.DeadLetterTask); err != nil {
		return letter, fmt.Errorf("message %s of the stream is no DeadLetterTask: %w", strconv.FormatUint(m.Sequence, 10), err)
	}
	return letter, nil
}
