"""sterna info --why net PEER SIZE without a job: what one would make of a list of drivers, and why."""

import json
import re
import tempfile

from harness import STERNA, LaunchTest, main


class WhyPlan(LaunchTest):
    def asker(self, folder):
        """info --why net ... --json of a user of whose jobs nothing is known, with some settings."""
        def ask(drivers, size, **settings):
            variables = {f"STERNA_{name.upper()}": value for name, value in settings.items()}
            environment = {**self.environment, "XDG_CACHE_HOME": folder, **variables}
            words = (STERNA, "info", "--why", "net", drivers, size)
            told = json.loads(self.run_job(*words, "--json", env=environment).stdout)
            text = self.run_job(*words, env=environment).stdout
            for way in told["ways"]:
                for key in ("driver", "figures", "protocol", "forming"):
                    self.assertTrue(way[key])
                    self.assertIn(way[key], text)
            return told, text
        return ask

    def test_why_tells_all_of_the_rail_that_a_plan_without_a_link_uses(self):
        with tempfile.TemporaryDirectory() as folder:
            ask = self.asker(folder)
            for drivers, rail in (("tcp,unix", "tcp"), ("tcp@lo", "tcp@lo"), ("delay(tcp)", "delay(tcp)")):
                told, text = ask(drivers, "4M")
                self.assertEqual((told["link"]["is_link"], told["link"]["rail"]), (False, rail))
                self.assertEqual([way["driver"] for way in told["ways"]], [rail])
                self.assertRegex(told["ways"][0]["protocol"], "^4194304 bytes: rendezvous .*; eager up to [0-9]+ bytes")
                self.assertIn("share a packet", told["ways"][0]["forming"])
                self.assertIn(f"No link ({drivers.replace(',', '+')}: one rail that loses nothing): a job takes {rail}", text)

            def latency(drivers):
                told, _ = ask(drivers, "4M")
                return int(re.search(r"latency (\d+) ns", told["ways"][0]["protocol"]).group(1))
            self.assertEqual(latency("delay(tcp,latency=1ms)"), latency("tcp") + 1_000_000)

    def test_a_choice_that_its_figures_contradict_has_its_reason(self):
        bounded = 0
        with tempfile.TemporaryDirectory() as folder:
            ask = self.asker(folder)
            for drivers in ("shm", "tcp", "delay(tcp,latency=1ms)", "delay(tcp,bandwidth=40M)", "tcp,unix"):
                for size in ("1K", "60K", "65K", "300K", "4M", "64M"):
                    told, _ = ask(drivers, size, net_rails="any")
                    link = [told["link"]["protocol"]] if told["link"]["is_link"] else []
                    for protocol in (*(way["protocol"] for way in told["ways"]), *link):
                        found = re.match(r"\d+ bytes: (eager|rendezvous)[^(]*\(eager (\d+) ns.*; rendezvous (\d+) ns", protocol)
                        self.assertTrue(found, protocol)
                        eager, rendezvous = int(found[2]), int(found[3])
                        if eager > rendezvous + 1 if found[1] == "eager" else eager + 1 < rendezvous:
                            bounded += 1
                            self.assertRegex(protocol, "eager up to [0-9]+ bytes, (as is|by what|the most, since|from where on)")
                            self.assertEqual("go with the announcement" in protocol, found[1] == "rendezvous", protocol)
        self.assertGreater(bounded, 5, "there are such choices")

    def test_why_tells_of_a_link_how_packets_are_formed_and_what_is_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            ask = self.asker(folder)
            for drivers, settings in (("tcp,unix", {"net_rails": "any"}), ("tcp", {"tcp_connections": "3"}),
                                      ("tcp", {"net_links": "on"}), ("shm", {"net_checksums": "on"})):
                told, text = ask(drivers, "4M", **settings)
                link = told["link"]
                self.assertTrue(link["is_link"], drivers)
                self.assertEqual(sum(rail["bytes"] for rail in link["rails"]), 4 << 20)
                self.assertIn("share a packet", link["forming"])
                self.assertIn("takes rail", link["choice"])
                self.assertIn("no zero copy: packets of messages are copied", link["copies"])
                for key in ("protocol", "forming", "choice", "copies"):
                    self.assertIn(f"  {link[key]}\n", text)
                self.assertEqual(link["copies"].endswith("copied directly, once, by shm"), drivers == "shm")

    def test_why_tells_where_messages_are_lent(self):
        with tempfile.TemporaryDirectory() as folder:
            ask = self.asker(folder)
            told, _ = ask("fabric@tcp", "4M")
            if told["link"]["absent"]:
                self.skipTest(told["link"]["absent"][0])
            protocol = told["ways"][0]["protocol"]
            self.assertRegex(protocol, "^4194304 bytes: rendezvous, lent .*zero copy")
            begin = int(re.search(r"from (\d+) bytes on", protocol).group(1))
            told, _ = ask("fabric@tcp", str(begin - 1))
            self.assertIn(f": rendezvous (", told["ways"][0]["protocol"])
            self.assertIn(f"lent (zero copy) from {begin} bytes on", told["ways"][0]["protocol"])
            for drivers, settings in (("fabric@tcp", {"fabric_read": "off"}), ("count(fabric@tcp)", {}), ("tcp", {})):
                told, _ = ask(drivers, "4M", **settings)
                self.assertNotIn("lent", told["ways"][0]["protocol"])
            told, _ = ask("fabric@tcp", "4M", net_links="on")
            link = told["link"]
            if "no zero copy" in link["copies"]:
                self.assertTrue(link["copies"].endswith("would be lent, with no copy, by fabric@tcp"), link["copies"])
                self.assertNotIn("lent", link["protocol"])
            else:
                self.assertIn("rendezvous, lent", link["protocol"])
            told, _ = ask("fabric@tcp", "4M", net_links="on", fabric_read="off")
            self.assertNotIn("lent", told["link"]["copies"])

    def test_why_tells_what_this_host_has_not_got(self):
        with tempfile.TemporaryDirectory() as folder:
            ask = self.asker(folder)
            for drivers in ("tcp@none9", "tcp,tcp@none9", "delay(tcp@none9)"):
                told, text = ask(drivers, "1M")
                self.assertEqual(len(told["link"]["absent"]), 1)
                self.assertRegex(told["link"]["absent"][0], 'tcp@none9.*: no interface that is up has the name.*"none9"')
                self.assertIn(f"not on this host: {told['link']['absent'][0]}", text)
            told, text = ask("tcp@lo", "1M")
            self.assertEqual(told["link"]["absent"], [])
            self.assertNotIn("not on this host", text)
            told, _ = ask("tcp", "1M", tcp_interface="none9")
            self.assertIn("none9", told["link"]["absent"][0])


if __name__ == "__main__":
    main()
