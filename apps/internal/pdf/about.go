package pdf

import (
	"bytes"
	"encoding/xml"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// maxAbout is the maximum size of one value of the metadata, in bytes.
const maxAbout = 16 << 10

// about reads the metadata: from the Info dictionary and, for missing values, from the XMP packet.
func (s *source) about() (About, error) {
	var a About
	root, err := s.table.Catalog()
	if err != nil {
		return a, ErrDamaged
	}
	data, err := s.content(root["Metadata"])
	if err := ignoreDamage(err); err != nil {
		return a, err
	}
	packet := readPacket(data)
	var info types.Dict
	if s.table.Info != nil {
		info = s.dict(*s.table.Info)
	}
	for _, line := range []struct {
		to       *string
		old, new string
	}{
		{&a.Title, "Title", "title"}, {&a.Author, "Author", "creator"}, {&a.Subject, "Subject", "description"}, {&a.Keywords, "Keywords", "Keywords"},
		{&a.Creator, "Creator", "CreatorTool"}, {&a.Producer, "Producer", "Producer"},
	} {
		if *line.to = normalise(s.textOf(info[line.old])); *line.to == "" {
			*line.to = normalise(packet[line.new])
		}
	}
	a.Created = firstDate(s.textOf(info["CreationDate"]), packet["CreateDate"])
	a.Modified = firstDate(s.textOf(info["ModDate"]), packet["ModifyDate"])
	if a.Language = normalise(s.textOf(root["Lang"])); a.Language == "" {
		a.Language = normalise(packet["language"])
	}
	return a, nil
}

// version returns the version of the header, or a later one from the catalog.
func (s *source) version() string {
	v := s.table.Version()
	return v.String()
}

func normalise(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for len(text) > maxAbout {
		_, n := utf8.DecodeLastRuneInString(text[:maxAbout+1])
		text = text[:maxAbout+1-n]
	}
	return text
}

// firstDate returns the first valid date, in the form of RFC 3339.
func firstDate(dates ...string) string {
	for _, d := range dates {
		if t, ok := types.DateTime(strings.TrimSpace(d), true); ok && strings.HasPrefix(d, "D:") {
			return t.Format(time.RFC3339)
		}
		for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02"} {
			if t, err := time.Parse(form, strings.TrimSpace(d)); err == nil {
				return t.Format(time.RFC3339)
			}
		}
	}
	return ""
}

// readPacket reads an XMP packet: XML in which each value is an element or an attribute. The first of each name is used.
func readPacket(data []byte) map[string]string {
	found := map[string]string{}
	if len(data) > 4<<20 {
		return found
	}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = false
	var path []string
	for {
		t, err := d.Token()
		if err != nil {
			return found
		}
		switch t := t.(type) {
		case xml.StartElement:
			if len(path) > 64 {
				return found
			}
			path = append(path, t.Name.Local)
			for _, a := range t.Attr {
				addFirst(found, a.Name.Local, a.Value)
			}
		case xml.EndElement:
			if len(path) > 0 {
				path = path[:len(path)-1]
			}
		case xml.CharData:
			for i := len(path) - 1; i >= 0; i-- {
				if path[i] != "li" && path[i] != "Alt" && path[i] != "Seq" && path[i] != "Bag" {
					addFirst(found, path[i], string(t))
					break
				}
			}
		}
	}
}

func addFirst(found map[string]string, name, value string) {
	if value = strings.TrimSpace(value); value != "" && found[name] == "" {
		found[name] = value
	}
}
