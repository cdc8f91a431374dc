package site

import (
	"errors"
	"net/http"

	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

// A noticesPage is the data of the page of notices.
type noticesPage struct {
	URL, Secret string
	Kept        bool // mails are kept
	Letters     []campaign.KeptLetter
}

const lettersShown = 50

func (s *Site) notices(v *visit) error { return s.showNotices(v, http.StatusOK, "") }

func (s *Site) showNotices(v *visit, status int, problem string) (err error) {
	data := noticesPage{Secret: s.HookSecret(v.Organisation), Kept: s.KeptMail}
	if data.URL, err = s.Campaigns.HookURL(v.r.Context(), v.Organisation); err != nil {
		return err
	}
	if data.Letters, err = s.Campaigns.Letters(v.r.Context(), v.Organisation, lettersShown); err != nil {
		return err
	}
	return s.render(v, status, "notices.html", view{Title: "Notices", Nav: "notices", Bad: problem, Data: data})
}

func (s *Site) setNotices(v *visit) error {
	err := s.Campaigns.SetHookURL(v.r.Context(), v.Organisation, v.r.PostForm.Get("url"))
	if errors.Is(err, campaign.ErrInvalid) {
		status, line := explain(err)
		return s.showNotices(v, status, line)
	}
	if err != nil {
		return err
	}
	return v.back("/notices", "said", "saved")
}
