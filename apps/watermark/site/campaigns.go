package site

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

const listed = 200 // campaigns and videos on a page

func (s *Site) list(v *visit) error {
	list, err := s.Campaigns.Campaigns(v.r.Context(), v.Organisation, listed)
	if err != nil {
		return err
	}
	return s.render(v, http.StatusOK, "campaigns.html", view{Title: "Campaigns", Nav: "campaigns", Data: list})
}

// A newForm is the data of the form for a campaign.
type newForm struct {
	Videos  []campaign.Asset
	Plan    campaign.Plan
	Problem string
	Days    string
}

func (s *Site) newPage(v *visit) error {
	return s.showForm(v, http.StatusOK, newForm{Plan: campaign.Plan{Asset: v.r.Form.Get("video"), Visible: true, Invisible: true}})
}

func (s *Site) showForm(v *visit, status int, form newForm) (err error) {
	if form.Videos, err = s.Campaigns.Assets(v.r.Context(), v.Organisation, listed); err != nil {
		return err
	}
	return s.render(v, status, "new.html", view{Title: "New campaign", Nav: "campaigns", Data: form})
}

func (s *Site) create(v *visit) error {
	form := v.r.PostForm
	plan := campaign.Plan{Asset: form.Get("video"), Name: form.Get("name"), Visible: form.Get("visible") != "", Invisible: form.Get("invisible") != ""}
	c, err := campaign.Campaign{}, error(nil)
	if plan.MaxDownloads, err = number(form.Get("downloads"), "the number of downloads"); err == nil {
		var days int
		if days, err = number(form.Get("days"), "the number of days"); err == nil && days > 0 {
			plan.ExpiresAt = time.Now().Add(time.Duration(days) * 24 * time.Hour)
		}
	}
	if err == nil {
		c, err = s.Campaigns.Create(v.r.Context(), v.Organisation, plan)
	}
	if errors.Is(err, campaign.ErrInvalid) {
		status, line := explain(err)
		return s.showForm(v, status, newForm{Plan: plan, Problem: line, Days: form.Get("days")})
	}
	if err != nil {
		return err
	}
	return v.back("/campaigns/"+c.ID, "said", "created")
}

// number reads a number that may be left out.
func number(text, what string) (int, error) {
	if strings.TrimSpace(text) == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 || n > 1_000_000 {
		return 0, fmt.Errorf("%w: %s must be a whole number, or empty", campaign.ErrInvalid, what)
	}
	return n, nil
}

// A campaignPage is the data of the page of one campaign.
type campaignPage struct {
	campaign.Campaign
	Video  campaign.Asset
	Tokens []campaign.Token
	Failed int
	Base   string // of the links to downloads
}

func (s *Site) show(v *visit) error {
	c, err := s.Campaigns.Campaign(v.r.Context(), v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.showCampaign(v, http.StatusOK, c, view{})
}

func (s *Site) showCampaign(v *visit, status int, c campaign.Campaign, page view) error {
	data := campaignPage{Campaign: c, Base: s.base(v.r)}
	var err error
	if data.Tokens, err = s.Campaigns.Tokens(v.r.Context(), c); err != nil {
		return err
	}
	if data.Video, err = s.Campaigns.Asset(v.r.Context(), v.Organisation, c.Asset); err != nil {
		return err
	}
	for _, t := range data.Tokens {
		if t.Status == campaign.TokenFailed {
			data.Failed++
		}
		if v.r.URL.Query().Get("retried") == t.ID {
			page.Notice = "Retry queued for " + t.Name + "."
		}
	}
	page.Title, page.Nav, page.Data = c.Name, "campaigns", data
	return s.render(v, status, "campaign.html", page)
}

// links answers with the recipients of a campaign and the addresses of their downloads.
func (s *Site) links(v *visit) error {
	c, err := s.Campaigns.Campaign(v.r.Context(), v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	tokens, err := s.Campaigns.Tokens(v.r.Context(), c)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", disposition("links.csv"))
	v.w.Header().Set("Cache-Control", "private, no-store")
	out := csv.NewWriter(v.w)
	_ = out.Write([]string{"name", "e-mail", "state", "link"}) // Flush has the error
	for _, t := range tokens {
		_ = out.Write([]string{plainCell(t.Name), plainCell(t.Email), string(t.Status), s.base(v.r) + t.Secret})
	}
	out.Flush()
	return out.Error()
}

// plainCell returns a text that a spreadsheet does not take for a formula.
func plainCell(text string) string {
	if strings.HasPrefix(text, "=") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "@") {
		return "'" + text
	}
	return text
}

// base returns the beginning of the addresses of downloads.
func (s *Site) base(r *http.Request) string { return cmp.Or(s.Public, scheme(r)+r.Host) + "/d/" }

// scheme returns the beginning of the addresses that a browser uses.
func scheme(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https://"
	}
	return "http://"
}

// addRecipients adds the recipient of a form, or those of a list: as text or as a file.
func (s *Site) addRecipients(v *visit) error {
	id := v.r.PathValue("id")
	list, err := recipientsOf(v.r)
	if err == nil {
		err = s.Campaigns.AddRecipients(v.r.Context(), v.Organisation, id, list)
	}
	if errors.Is(err, campaign.ErrInvalid) {
		return s.again(v, id, err)
	}
	if err != nil {
		return err
	}
	return v.back("/campaigns/"+id, "said", "added")
}

// recipientsOf reads the recipients of a form.
func recipientsOf(r *http.Request) ([]campaign.Recipient, error) {
	if r.PostForm.Has("name") {
		return []campaign.Recipient{{Name: r.PostForm.Get("name"), Email: strings.TrimSpace(r.PostForm.Get("email"))}}, nil
	}
	list, err := readRecipients(r.PostForm.Get("recipients"))
	if file, _, missing := r.FormFile("list"); err == nil && missing == nil {
		content, bad := io.ReadAll(file)
		if err := errors.Join(bad, file.Close()); err != nil {
			return nil, cutOff(err)
		}
		more, bad := readRecipients(strings.TrimPrefix(string(content), "\ufeff"))
		list, err = append(list, more...), bad
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: give at least one recipient: a name and, after a comma, an e-mail address", campaign.ErrInvalid)
	}
	return list, err
}

func (s *Site) removeRecipient(v *visit) error {
	id := v.r.PathValue("id")
	if err := s.Campaigns.RemoveRecipient(v.r.Context(), v.Organisation, id, v.r.PathValue("token")); err != nil {
		return err
	}
	return v.back("/campaigns/"+id, "said", "removed")
}

// again shows the page of a campaign with what is wrong.
func (s *Site) again(v *visit, id string, problem error) error {
	c, err := s.Campaigns.Campaign(v.r.Context(), v.Organisation, id)
	if err != nil {
		return err
	}
	status, line := explain(problem)
	return s.showCampaign(v, status, c, view{Bad: line})
}

// readRecipients reads lines of a name and, after a comma, an e-mail address. A first line that names the columns is skipped.
func readRecipients(text string) (list []campaign.Recipient, err error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord, lines.TrimLeadingSpace = -1, true
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: the list cannot be read: %v", campaign.ErrInvalid, err) //nolint:errorlint // the cause is only shown
		}
		r := campaign.Recipient{Name: strings.TrimSpace(fields[0])}
		if len(fields) > 1 {
			r.Email = strings.TrimSpace(fields[1])
		}
		if len(list) == 0 && strings.EqualFold(r.Name, "name") && strings.Contains(strings.ToLower(r.Email), "mail") && !strings.Contains(r.Email, "@") {
			continue
		}
		list = append(list, r)
	}
	return list, nil
}

func (s *Site) publish(v *visit) error {
	id := v.r.PathValue("id")
	_, err := s.Campaigns.Publish(v.r.Context(), v.Organisation, id)
	if errors.Is(err, campaign.ErrInvalid) {
		return s.again(v, id, err)
	}
	if err != nil {
		return err
	}
	return v.back("/campaigns/"+id, "said", "published")
}

// retry answers POST /campaigns/{id}/tokens/{token}/retry as section 6.1 of the specification says: 404, 400 with a message, or a redirect with one.
func (s *Site) retry(v *visit) error {
	id := v.r.PathValue("id")
	t, err := s.Campaigns.Retry(v.r.Context(), v.Organisation, id, v.r.PathValue("token"), v.Name())
	if errors.Is(err, campaign.ErrNotFailed) {
		return s.again(v, id, err)
	}
	if err != nil {
		return err
	}
	return v.back("/campaigns/"+id, "retried", t.ID)
}

const (
	lookEvery  = time.Second
	streamLife = 30 * time.Minute // then the browser connects again
)

// events streams what happens to the tokens of a campaign, or to one of them: token_failed when one has failed for good, progress when one moves, and campaign when its state
// changes.
func (s *Site) events(v *visit) error {
	ctx := v.r.Context()
	c, err := s.Campaigns.Campaign(ctx, v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	only := v.r.PathValue("token")
	if only != "" {
		if _, err := s.Campaigns.Token(ctx, c, only); err != nil {
			return err
		}
	}
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(v.w)
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	end := time.After(streamLife)
	known := watched{}
	for {
		if c, err = s.Campaigns.Campaign(ctx, v.Organisation, c.ID); err != nil {
			return nil // the stream ends; the browser connects again
		}
		tokens, err := s.Campaigns.Tokens(ctx, c)
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		if only != "" {
			tokens = slices.DeleteFunc(tokens, func(t campaign.Token) bool { return t.ID != only })
		}
		if err := known.tell(v.w, c, tokens); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		if out.Flush() != nil {
			return nil
		}
		select {
		case <-every.C:
		case <-end:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// A watched is what a stream has said last, by token; the campaign's has no name. It is empty before the first look, which says nothing: the page was loaded a moment before.
type watched map[string]string

// tell writes the events of what has changed since the last look.
func (k watched) tell(w io.Writer, c campaign.Campaign, tokens []campaign.Token) error {
	first, said := len(k) == 0, false
	say := func(name, event, now string, data any) error {
		if k[name] == now {
			return nil
		}
		k[name] = now
		if first {
			return nil
		}
		said = true
		return writeEvent(w, event, data)
	}
	for _, t := range tokens {
		event, data := "progress", map[string]any{"token_id": t.ID, "status": t.Status, "percent": math.Round(t.Percent), "retry_count": t.Retries}
		if t.Status == campaign.TokenFailed {
			event, data = "token_failed", map[string]any{"token_id": t.ID, "error": t.Error}
		}
		if err := say(t.ID, event, fmt.Sprintf("%s %.0f %d %d %d", t.Status, t.Percent, t.Generation, t.Retries, t.Downloads), data); err != nil {
			return err
		}
	}
	if err := say("", "campaign", string(c.State), map[string]any{"state": c.State}); err != nil || said {
		return err
	}
	_, err := io.WriteString(w, ": \n\n")
	return err
}

func writeEvent(w io.Writer, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
	return err
}
