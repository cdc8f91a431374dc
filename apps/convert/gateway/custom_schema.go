package gateway

import (
	"bufio"
	"bytes"
)

// schema returns the XML schema of the mapping.
func (p customMapping) schema() []byte {
	var text bytes.Buffer
	w := &writer{to: bufio.NewWriter(&text)}
	w.begin()
	w.open("xs:schema", attribute{"xmlns:xs", "http://www.w3.org/2001/XMLSchema"}, attribute{"targetNamespace", p.space}, attribute{"elementFormDefault", "qualified"})
	w.open("xs:annotation")
	w.leaf("xs:documentation", p.title)
	w.close("xs:annotation")
	w.schemaElement(p.root)
	w.close("xs:schema")
	_ = w.end() // a write to memory cannot fail
	return text.Bytes()
}

// schemaElement describes the element of a rule, with how often it may occur. The root has no occurrences.
func (w *writer) schemaElement(r rule, occurs ...attribute) {
	attributes := r.schemaAttributes()
	about := append([]attribute{{"name", r.name}}, occurs...)
	switch {
	case !r.hasChildren() && len(attributes) == 0 && len(occurs) > 0:
		w.leaf("xs:element", "", append(about, attribute{"type", "xs:string"})...)
		return
	case r.hasChildren() || len(occurs) == 0:
		w.open("xs:element", about...)
		w.open("xs:complexType")
		w.schemaContent(r)
		w.leaves("xs:attribute", attributes)
	default:
		w.open("xs:element", about...)
		w.open("xs:complexType")
		w.open("xs:simpleContent")
		w.open("xs:extension", attribute{"base", "xs:string"})
		w.leaves("xs:attribute", attributes)
		w.close("xs:extension")
		w.close("xs:simpleContent")
	}
	w.close("xs:complexType")
	w.close("xs:element")
}

// schemaContent describes the elements in an element, in the order in which they are written.
func (w *writer) schemaContent(r rule) {
	w.open("xs:sequence")
	if r.groups != groupsAttributes {
		for _, name := range r.groupNames() {
			w.leaf("xs:element", "", attribute{"name", name}, attribute{"type", "xs:string"}, attribute{"minOccurs", "0"})
		}
	}
	for _, inner := range r.rules {
		if inner.attribute {
			continue
		}
		minOccurs, maxOccurs := "0", "1"
		if inner.required || inner.fallback != "" {
			minOccurs = "1"
		}
		if inner.each {
			maxOccurs = "unbounded"
		}
		w.schemaElement(inner, attribute{"minOccurs", minOccurs}, attribute{"maxOccurs", maxOccurs})
	}
	w.close("xs:sequence")
}

// schemaAttributes describes the attributes of an element.
func (r rule) schemaAttributes() (all [][]attribute) {
	if r.groups == groupsAttributes {
		for _, name := range r.groupNames() {
			all = append(all, []attribute{{"name", name}, {"type", "xs:string"}})
		}
	}
	for _, inner := range r.rules {
		if !inner.attribute {
			continue
		}
		use := "optional"
		if inner.required || inner.fallback != "" {
			use = "required"
		}
		all = append(all, []attribute{{"name", inner.name}, {"type", "xs:string"}, {"use", use}})
	}
	return all
}

func (w *writer) leaves(name string, all [][]attribute) {
	for _, attributes := range all {
		w.leaf(name, "", attributes...)
	}
}
