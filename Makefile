# The two commands a newcomer needs: `make demo` and `make test`.
PYTHON ?= $(shell tools/find-python 3.11)
VENV := .venv

.PHONY: demo test check bench fuzz pains dist sbom clean

demo: $(VENV)/.installed            ## the main job, as an ordinary user: watch two real Pods end
	$(VENV)/bin/lastcall demo all || [ $$? -eq 3 ]   # 3: one of the two Pods is killed, as it should be

test:                               ## everything CI runs: linters, types, layers, tests on Python 3.11 and 3.13
	tools/test

check: $(VENV)/.installed-dev       ## linters, types and layers only
	tools/check $(VENV)

bench: $(VENV)/.installed-dev       ## measurements of this machine (see bench/README.md)
	$(VENV)/bin/python -m bench

$(VENV)/.installed: pyproject.toml
	tools/make-venv "$(PYTHON)" $(VENV)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml
	tools/make-venv "$(PYTHON)" $(VENV) dev
	@touch $@ $(VENV)/.installed

fuzz: $(VENV)/.installed-dev        ## MINUTES=n of inputs that nobody would write, for every decoder (see tests/fuzz)
	$(VENV)/bin/python tests/fuzz --minutes $(or $(MINUTES),2)

pains: $(VENV)/.installed-dev       ## every pain of tests/pains on the kernel: n/n (ONLY=name: one; JSON=file: for machines)
	$(VENV)/bin/python tests/pains $(if $(ONLY),--only $(ONLY)) $(if $(JSON),--json $(JSON))

dist: $(VENV)/.installed-dev        ## wheel and sdist in dist/, built twice and compared
	$(VENV)/bin/python tools/release.py

sbom: dist                          ## dist/lastcall.cdx.json: what an installation consists of (CycloneDX)
	tools/make-sbom "$(PYTHON)" dist

clean:
	rm -rf $(VENV) .venv-* build/pains dist
