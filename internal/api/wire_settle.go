package api

import (
	"encoding/hex"

	"github.com/holdfastdev/holdfast"
)

// settlements is the body of SettleIn.
type settlements = struct {
	Settlements []Settlement `json:"settlements" doc:"At most 10000 settlements."`
}

// appendSettlements encodes settlements by hand, because there is one for every attempt.
func appendSettlements(all []Settlement) ([]byte, error) {
	p := jsonWriter{out: append(make([]byte, 0, 20+200*len(all)), `{"settlements":[`...)}
	for i := range all {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		if err := p.settlement(&all[i]); err != nil {
			return nil, err
		}
	}
	return append(p.out, "]}"...), nil
}

func (p *jsonWriter) settlement(s *Settlement) error {
	p.open()
	p.out = append(appendID(append(p.out, `"batch":"`...), s.Batch), `","job":"`...)
	p.out = append(appendID(p.out, s.Job), '"')
	p.first = false
	p.count("token", s.Token)
	p.name("to")
	p.out = appendText(p.out, string(s.To))
	p.duration("delay", s.Delay)
	p.text("charge", string(s.Charge))
	p.number("limit", s.Limit)
	p.duration("start_within", s.StartWithin)
	p.text("version", s.Version)
	p.text("queue", s.Queue)
	if s.Confirm {
		p.name("confirm")
		p.out = append(p.out, "true"...)
	}
	if len(s.Enqueue) > 0 {
		p.name("enqueue")
		p.out = append(p.out, '[')
		for i := range s.Enqueue {
			if i > 0 {
				p.out = append(p.out, ',')
			}
			var err error
			if p.out, err = AppendDraft(p.out, &s.Enqueue[i], s.Enqueue[i].ID); err != nil {
				return err
			}
		}
		p.out = append(p.out, ']')
	}
	p.duration("took", s.Took)
	if len(s.Result) > 0 {
		p.raw("result", s.Result)
	}
	if s.Failure != nil {
		text, err := Marshal(s.Failure)
		if err != nil {
			return err
		}
		p.name("failure")
		p.out = append(p.out, text...)
	}
	p.text("why", s.Why)
	p.close()
	return nil
}

// appendJSON encodes answers. Most are null, which means success.
func (a Answers) appendJSON(out []byte) []byte {
	out = append(out, `{"answers":[`...)
	for i, problem := range a.Answers {
		if i > 0 {
			out = append(out, ',')
		}
		text := []byte("null")
		if problem != nil {
			if told, err := Marshal(problem); err == nil { // a problem has only strings and numbers, which always encode
				text = told
			}
		}
		out = append(out, text...)
	}
	return append(out, "]}"...)
}

// appendID writes an id without allocating a string.
func appendID(out []byte, id holdfast.ID) []byte {
	out = append(hex.AppendEncode(out, id[:4]), '-')
	out = append(hex.AppendEncode(out, id[4:6]), '-')
	out = append(hex.AppendEncode(out, id[6:8]), '-')
	out = append(hex.AppendEncode(out, id[8:10]), '-')
	return hex.AppendEncode(out, id[10:])
}
