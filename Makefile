# The two commands a newcomer needs: `make demo` and `make test`.
PYTHON ?= $(shell tools/find-python 3.11)
VENV := .venv

.PHONY: test-fast test-all test-times mutants differential conformance demo ui docs site tour tour-static test check bench fuzz pains dist sbom machines bare-machines wheels first-test clean

demo: $(VENV)/.installed            ## the main job, as an ordinary user: watch two real Pods end
	$(VENV)/bin/lastcall demo all || [ $$? -eq 3 ]   # 3: one of the two Pods is killed, as it should be

test:                               ## what CI runs, in 15 minutes: checks, rules, one of each kind on the kernel (docs/testing.md)
	tools/test main

test-fast:                          ## rules and virtual time only
	tools/test fast

test-all:                           ## everything: each Python, every test of the kernel, other engines, browser
	tools/test all

test-times:                         ## the same, and write how long each test took to tests/times.json
	tools/test all --record-times

mutants:                            ## changes 100 places of a package and sees whether a test fails (PACKAGE=node COUNT=100 SEED=text)
	tools/mutate $(foreach each,$(PACKAGE),--package $(each)) --count $(or $(COUNT),100) $(if $(SEED),--seed "$(SEED)")

check: $(VENV)/.installed-dev       ## linters, types and layers only
	tools/check $(VENV)

bench: $(VENV)/.installed-dev       ## measurements of this machine (see bench/README.md)
	$(VENV)/bin/python -m bench

$(VENV)/.installed: pyproject.toml
	tools/make-venv "$(PYTHON)" $(VENV)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	tools/make-venv "$(PYTHON)" $(VENV) dev
	@cp pyproject.toml $@ && touch $(VENV)/.installed

$(VENV)/.installed-ui: pyproject.toml
	tools/make-venv "$(PYTHON)" $(VENV) ui
	@touch $@

fuzz: $(VENV)/.installed-dev        ## MINUTES=n of inputs that nobody would write, for every decoder (see tests/fuzz)
	$(VENV)/bin/python tests/fuzz --minutes $(or $(MINUTES),2)

pains: $(VENV)/.installed-dev       ## every pain of tests/pains on the kernel: n/n (ONLY=name: one; JSON=file: for machines)
	$(VENV)/bin/python tests/pains $(if $(ONLY),--only $(ONLY)) $(if $(JSON),--json $(JSON))

differential: $(VENV)/.installed-dev ## the same requests to a real API server ($$KUBERNETES_HOME) and ours: COUNT=25000 SEED=text ONLY=v1
	PYTHONPATH=src:tools:tests/support $(VENV)/bin/python -m differential --count $(or $(COUNT),25000) --seed "$(SEED)" --only "$(ONLY)"

conformance: $(VENV)/.installed-dev  ## Kubernetes's own suite on two nodes (root, ../shared/kubernetes; 40 minutes): docs/conformance.md (FOCUS=regex: some)
	$(VENV)/bin/python tools/conformance.py --focus "$(FOCUS)"

dist: $(VENV)/.installed-dev        ## wheel and sdist in dist/, built twice and compared
	$(VENV)/bin/python tools/release.py

sbom: dist                          ## dist/lastcall.cdx.json: what an installation consists of (CycloneDX)
	tools/make-sbom "$(PYTHON)" dist

machines: $(VENV)/.installed-dev    ## boots Debian 12 and 13 (own kernels, systemd, cgroup v2) and tries lastcall there: docs/machines.md (root, qemu, 2 hours)
	PYTHONPATH=tools $(VENV)/bin/python -m machines $(MACHINES)

bare-machines: $(VENV)/.installed-dev ## the wheel on file systems of Debian 12 and 13 with Python and nothing else (10 minutes, root)
	$(VENV)/bin/python tools/try_machines.py

wheels: $(VENV)/.installed-dev      ## asks pip for wheels of every dependency: glibc, musl, arm64, macOS, Windows; 3.11 to 3.14
	$(VENV)/bin/python tools/try_wheels.py

first-test: $(VENV)/.installed-dev  ## from nothing to a first passing test, as an ordinary user, in seconds; pipx run
	$(VENV)/bin/python tools/first_test.py

clean:
	rm -rf $(VENV) .venv-* build/pains build/machines build/site build/site-source build/tour dist

site: $(VENV)/.installed-dev        ## the documentation as a site, in build/site: every guide, the reference, the tour to play
	PYTHONPATH=src:tools:tests/support $(VENV)/bin/python -m make_site

docs: site                            ## the same

tour: $(VENV)/.installed-dev        ## what versions of Kubernetes change in the tour's steps, anew (then `make ui`)
	$(VENV)/bin/python tools/make_tour.py

ui: $(VENV)/.installed-ui           ## build the page of `lastcall ui` from ui/, with a Node of its own (61 MB, once)
	tools/make-page $(VENV)

tour-static: $(VENV)/.installed-dev ## the tour as a folder to serve or to open, without a cluster: build/tour
	PYTHONPATH=src:tools:tests/support $(VENV)/bin/python -m make_site.playing build/tour
