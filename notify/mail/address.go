package mail

import (
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode"
)

const (
	mostAddresses = 50
	longest       = 254 // bytes of an address, as RFC 5321 has it
)

// unprintable are the characters that could end a header's line, or hide what a reader sees.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar
}

// addresses reads a target: one address, or several with commas between them. Twins count once.
func addresses(target string) ([]*netmail.Address, error) {
	if strings.ContainsFunc(target, unprintable) {
		return nil, errors.New("a mail target with control characters: give addresses on one line, with commas between them")
	}
	list, err := netmail.ParseAddressList(target)
	if err != nil {
		return nil, fmt.Errorf("the mail target %.80q is no list of addresses (%w): write them like ana@example.com, ben@example.com", target, err)
	}
	if len(list) > mostAddresses {
		return nil, fmt.Errorf("a mail target of %d addresses: the limit is %d; use a mailing list", len(list), mostAddresses)
	}
	seen := make(map[string]bool)
	kept := list[:0]
	for _, a := range list {
		if err := usable(a); err != nil {
			return nil, err
		}
		if !seen[a.Address] {
			kept = append(kept, a)
		}
		seen[a.Address] = true
	}
	return kept, nil
}

// oneAddress reads a sender.
func oneAddress(text string) (*netmail.Address, error) {
	a, err := netmail.ParseAddress(text)
	if err == nil && strings.ContainsFunc(text, unprintable) {
		err = errors.New("it has control characters")
	}
	if err != nil {
		return nil, fmt.Errorf("the sender %.80q is no mail address (%w): write it like Holdfast <holdfast@example.com>", text, err)
	}
	return a, usable(a)
}

// usable looks at an address after it was decoded: an encoded name may have brought back what the text did not show.
func usable(a *netmail.Address) error {
	switch {
	case strings.ContainsFunc(a.Name, unprintable) || strings.ContainsFunc(a.Address, unprintable):
		return fmt.Errorf("the mail address %.80q has control characters: leave them out", a.Address)
	case len(a.Address) > longest:
		return fmt.Errorf("a mail address of %d bytes: the limit is %d", len(a.Address), longest)
	case strings.ContainsAny(a.Address, " <>"):
		return fmt.Errorf("the mail address %.80q has blanks or angle brackets: no server takes that", a.Address)
	}
	return nil
}

// bare is an address as SMTP wants it.
func bare(a *netmail.Address) string { return (&netmail.Address{Address: a.Address}).String() }

// oneLine makes a text fit for a header: on one line, and not too long.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unprintable(r) }), " ")
	return shorten(text, most)
}

// shorten cuts a text that is too long, between two characters, and shows it.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
