
-- ARGV token or nothing, replica, nonce
-- Returns {ok, ..., head, marker, held}.

local err = check()
if err then
  return err
end
return report('ok', ARGV[1], ARGV[2], ARGV[3])
