package pdf

import (
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	maxFormDepth = 32
	maxFields    = 20_000
)

// A formWalk reads a form from its root fields.
type formWalk struct {
	*source
	pages  map[int]int // the page of an object, by the object's number
	seen   map[int]bool
	fields []Field
}

// fields returns the fields of the document's form.
func (s *source) fields(pages []pageObject) ([]Field, error) {
	root, err := s.table.Catalog()
	if err != nil {
		return nil, ErrDamaged
	}
	w := &formWalk{source: s, pages: map[int]int{}, seen: map[int]bool{}}
	for i, p := range pages {
		w.pages[p.number] = i + 1
		for _, o := range s.array(p.dict["Annots"]) {
			w.pages[objectNumber(o)] = i + 1
		}
	}
	delete(w.pages, 0)
	for _, o := range s.array(s.dict(root["AcroForm"])["Fields"]) {
		if err := w.field(o, Field{}, types.Dict{}, 0); err != nil {
			return nil, err
		}
	}
	return w.fields, nil
}

// field reads a field or its child fields. A field inherits missing entries from its parent.
func (w *formWalk) field(o types.Object, above Field, inherited types.Dict, depth int) error {
	if err := w.step(); err != nil {
		return err
	}
	d, number := w.dict(o), objectNumber(o)
	if d == nil || depth > maxFormDepth || number != 0 && w.seen[number] {
		return nil
	}
	w.seen[number] = true
	own := types.Dict{}
	for _, name := range []string{"FT", "Ff", "V"} {
		if v, ok := d[name]; ok {
			own[name] = v
		} else if v, ok := inherited[name]; ok {
			own[name] = v
		}
	}
	f := Field{Name: join(above.Name, w.textOf(d["T"]))}
	kids := w.array(d["Kids"])
	if w.hasNames(kids) {
		for _, kid := range kids {
			if err := w.field(kid, f, own, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if len(w.fields) >= maxFields {
		return ErrTooMuch
	}
	if f.Kind = w.kind(own); f.Kind == "" {
		return nil
	}
	f.Page = w.page(o, d, kids)
	value, err := w.value(f.Kind, own["V"])
	if err != nil {
		return err
	}
	f.Value = value
	if w.text -= int64(len(f.Value) + len(f.Name)); w.text < 0 {
		return ErrTooMuch
	}
	w.fields = append(w.fields, f)
	return nil
}

// hasNames reports whether the kids of a field are child fields. Kids without names are the widgets of one field.
func (w *formWalk) hasNames(kids types.Array) bool {
	for _, kid := range kids {
		if _, ok := w.dict(kid)["T"]; ok {
			return true
		}
	}
	return false
}

func (w *formWalk) kind(d types.Dict) string {
	const radio, push = 1 << 15, 1 << 16
	switch flags := w.integer(d["Ff"]); w.name(d["FT"]) {
	case "Tx":
		return "text"
	case "Ch":
		return "choice"
	case "Sig":
		return "signature"
	case "Btn":
		if flags&push != 0 {
			return "button"
		}
		if flags&radio != 0 {
			return "radio"
		}
		return "checkbox"
	}
	return ""
}

func (w *formWalk) page(o types.Object, d types.Dict, kids types.Array) int {
	if n := w.pages[objectNumber(o)]; n != 0 {
		return n
	}
	if n := w.pages[objectNumber(d["P"])]; n != 0 {
		return n
	}
	for _, kid := range kids {
		if n := w.pages[objectNumber(kid)]; n != 0 {
			return n
		}
		if n := w.pages[objectNumber(w.dict(kid)["P"])]; n != 0 {
			return n
		}
	}
	return 0
}

// value returns the value of a field: its text, the name of its state, the chosen options, or the name of the signer.
func (w *formWalk) value(kind string, o types.Object) (string, error) {
	switch v := w.resolve(o).(type) {
	case types.Name:
		if name := w.name(v); name != "Off" || kind == "text" {
			return compose(name), nil
		}
		return "", nil
	case types.StringLiteral, types.HexLiteral:
		return w.textOf(v), nil
	case types.Array:
		var chosen []string
		for _, one := range v[:min(len(v), 1000)] {
			chosen = append(chosen, w.textOf(one))
		}
		return strings.Join(chosen, ", "), nil
	case types.StreamDict:
		data, err := w.content(v)
		return decodeText(data), ignoreDamage(err)
	case types.Dict:
		return w.textOf(v["Name"]), nil
	}
	return "", nil
}

func join(above, name string) string {
	if above == "" || name == "" {
		return above + name
	}
	return above + "." + name
}
