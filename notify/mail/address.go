package mail

import (
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode"
)

const (
	maxAddresses  = 50
	maxAddressLen = 254 // maximum length in bytes (RFC 5321)
)

// unprintable are characters that could end a header line or hide text from a reader.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar
}

// parseTarget parses a target: one address, or several separated by commas. Duplicates are dropped.
func parseTarget(target string) ([]*netmail.Address, error) {
	if strings.ContainsFunc(target, unprintable) {
		return nil, errors.New("the mail target has control characters: give addresses on one line, separated by commas")
	}
	list, err := netmail.ParseAddressList(target)
	if err != nil {
		return nil, fmt.Errorf("the mail target %.80q is not a list of addresses (%w): use a form such as ana@example.com, ben@example.com", target, err)
	}
	if len(list) > maxAddresses {
		return nil, fmt.Errorf("the mail target has %d addresses, the maximum is %d: use a mailing list", len(list), maxAddresses)
	}
	seen := make(map[string]bool)
	kept := list[:0]
	for _, a := range list {
		if err := checkAddress(a); err != nil {
			return nil, err
		}
		if !seen[a.Address] {
			kept = append(kept, a)
		}
		seen[a.Address] = true
	}
	return kept, nil
}

// parseSender parses the sender.
func parseSender(text string) (*netmail.Address, error) {
	a, err := netmail.ParseAddress(text)
	if err == nil && strings.ContainsFunc(text, unprintable) {
		err = errors.New("it has control characters")
	}
	if err != nil {
		return nil, fmt.Errorf("the sender %.80q is not a mail address (%w): use a form such as Holdfast <holdfast@example.com>", text, err)
	}
	return a, checkAddress(a)
}

// checkAddress checks an address after decoding: an encoded name may contain characters that the text did not show.
func checkAddress(a *netmail.Address) error {
	switch {
	case strings.ContainsFunc(a.Name, unprintable) || strings.ContainsFunc(a.Address, unprintable):
		return fmt.Errorf("the mail address %.80q has control characters: remove them", a.Address)
	case len(a.Address) > maxAddressLen:
		return fmt.Errorf("a mail address has %d bytes: the maximum is %d", len(a.Address), maxAddressLen)
	case strings.ContainsAny(a.Address, " <>"):
		return fmt.Errorf("the mail address %.80q has spaces or angle brackets: mail servers refuse it", a.Address)
	}
	return nil
}

// smtpAddress is an address in the form for SMTP commands.
func smtpAddress(a *netmail.Address) string { return (&netmail.Address{Address: a.Address}).String() }

// oneLine makes a text fit for a header: one line of at most so many characters.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unprintable(r) }), " ")
	return shorten(text, most)
}

// shorten cuts a text to a number of characters and marks the cut with an ellipsis.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
