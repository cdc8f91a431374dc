package pdftest

import (
	"fmt"
	"strings"
	"testing"
)

// A Field is a field of Form. Kind is text, checkbox, radio, choice, button or signature. A name with dots creates child fields. The value of a checkbox or a radio button
// is the name of its state, or Off.
type Field struct{ Name, Kind, Value string }

// Form creates a page with a form, with a name next to each field.
func Form(t testing.TB, fields ...Field) []byte {
	t.Helper()
	d := begin()
	var labels, values []string
	for _, field := range fields {
		labels, values = append(labels, field.Name), append(values, field.Value)
	}
	f := d.fonts(t, append(values, labels...))
	content := f.lines(t, 72, 770, labels)
	page := d.page(f.resources, content, "") // its widgets are added later
	parents := map[string]*folder{"": {}}
	var widgets []string
	for i, field := range fields {
		parent, own := d.parent(parents, field.Name)
		n := d.add("")
		y := 770 - i*leading
		widget := fmt.Sprintf("/Type /Annot /Subtype /Widget /F 4 /P %d 0 R /Rect [300 %d 500 %d]", page, y-2, y+11)
		above := ""
		if parent.number != 0 {
			above = fmt.Sprintf("/Parent %d 0 R", parent.number)
		}
		d.objects[n-1] = fmt.Sprintf("<< /T %s %s %s %s >>", wide(own), above, widget+d.shown(t, f, field), entries(t, field))
		parent.kids = append(parent.kids, fmt.Sprintf("%d 0 R", n))
		widgets = append(widgets, fmt.Sprintf("%d 0 R", n))
	}
	for _, p := range parents {
		if p.number != 0 {
			d.objects[p.number-1] = fmt.Sprintf("<< /T %s %s /Kids [%s] >>", wide(p.own), p.above, strings.Join(p.kids, " "))
		}
	}
	d.objects[page-1] = strings.TrimSuffix(d.objects[page-1], ">>") + fmt.Sprintf("/Annots [%s] >>", strings.Join(widgets, " "))
	d.catalog = fmt.Sprintf("/AcroForm << /DA (/F1 12 Tf 0 g) /DR << %s >> /Fields [%s] >>", f.resources, strings.Join(parents[""].kids, " "))
	return d.bytes()
}

// shown returns the appearance of a field's value, for kinds with text.
func (d *draft) shown(t testing.TB, f fontSet, field Field) string {
	t.Helper()
	if field.Kind != "text" && field.Kind != "choice" || field.Value == "" {
		return ""
	}
	drawing := d.add(Stream("/Type /XObject /Subtype /Form /BBox [0 0 200 13] /Resources << "+f.resources+" >>", []byte(f.lines(t, 2, 3, []string{field.Value}))))
	return fmt.Sprintf(" /AP << /N %d 0 R >>", drawing)
}

// A folder is a field with child fields. The one without a number is the form.
type folder struct {
	number     int
	own, above string
	kids       []string
}

func (d *draft) parent(parents map[string]*folder, name string) (*folder, string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return parents[""], name
	}
	path := name[:i]
	if p, ok := parents[path]; ok {
		return p, name[i+1:]
	}
	grand, own := d.parent(parents, path)
	p := &folder{number: d.add(""), own: own}
	if grand.number != 0 {
		p.above = fmt.Sprintf("/Parent %d 0 R", grand.number)
	}
	grand.kids = append(grand.kids, fmt.Sprintf("%d 0 R", p.number))
	parents[path] = p
	return p, name[i+1:]
}

// entries returns the dictionary entries of a field of its kind.
func entries(t testing.TB, f Field) string {
	t.Helper()
	switch f.Kind {
	case "text":
		return "/FT /Tx /V " + wide(f.Value)
	case "checkbox", "radio":
		state := f.Value
		if state == "" {
			state = "Off"
		}
		flags := 0
		if f.Kind == "radio" {
			flags = 1 << 15
		}
		return fmt.Sprintf("/FT /Btn /Ff %d /V /%s /AS /%s", flags, state, state)
	case "choice":
		return fmt.Sprintf("/FT /Ch /Ff %d /Opt [%s] /V %s", 1<<17, wide(f.Value), wide(f.Value))
	case "button":
		return fmt.Sprintf("/FT /Btn /Ff %d", 1<<16)
	case "signature":
		return "/FT /Sig"
	}
	t.Fatalf("pdftest does not support fields of the kind %q", f.Kind)
	return ""
}
