package site

import (
	"net/http"
	"os"

	"github.com/holdfastdev/holdfast/apps/watermark/campaign"
)

const searchesShown = 20

// A detectPage is the data of the form for a search.
type detectPage struct {
	Campaigns []campaign.Campaign
	Searches  []campaign.Search
}

func (s *Site) startPage(v *visit) error { return s.showDetect(v, http.StatusOK, "") }

func (s *Site) showDetect(v *visit, status int, problem string) error {
	all, err := s.Campaigns.Campaigns(v.r.Context(), v.Organisation, listed)
	if err != nil {
		return err
	}
	var list []campaign.Campaign
	for _, c := range all {
		if c.Invisible && !c.PublishedAt.IsZero() {
			list = append(list, c)
		}
	}
	searches, err := s.Campaigns.Searches(v.r.Context(), v.Organisation, searchesShown)
	if err != nil {
		return err
	}
	return s.render(v, status, "detect.html", view{Title: "Detect", Nav: "detect", Bad: problem, Data: detectPage{list, searches}})
}

func (s *Site) detect(v *visit) error {
	in, err := s.receive(v)
	if err != nil {
		return s.refuseFile(v, err, s.showDetect)
	}
	defer func() { _ = os.Remove(in.path) }() // nothing is there after it was moved
	id, err := s.Campaigns.StartFind(v.r.Context(), v.Organisation, in.fields["campaign"], in.name, in.path)
	if err != nil {
		return s.refuseFile(v, err, s.showDetect)
	}
	return v.back("/detect/" + id.String())
}

// A foundPage is the data of the page of a search.
type foundPage struct {
	campaign.Search
	Campaign campaign.Campaign
}

func (s *Site) found(v *visit) error {
	search, err := s.Campaigns.Search(v.r.Context(), v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	data := foundPage{Search: search}
	if search.Found != nil && search.Found.Campaign != "" {
		if data.Campaign, err = s.Campaigns.Campaign(v.r.Context(), v.Organisation, search.Found.Campaign); err != nil {
			return err
		}
	}
	if !search.State.Terminal() {
		v.w.Header().Set("Refresh", "2")
	}
	return s.render(v, http.StatusOK, "found.html", view{Title: "Search", Nav: "detect", Data: data})
}

func (s *Site) evidence(v *visit) error {
	search, err := s.Campaigns.Search(v.r.Context(), v.Organisation, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if search.Evidence == "" {
		return campaign.ErrNotFound
	}
	v.w.Header().Set("Content-Type", "image/png")
	http.ServeFile(v.w, v.r, search.Evidence)
	return nil
}
