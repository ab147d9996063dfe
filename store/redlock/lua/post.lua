
-- ARGV id, message, messages at most, channel
-- Returns {ok} or {full}.

local err = check()
if err then
  return err
end
if redis.call('HEXISTS', inbox, ARGV[1]) == 0 then
  if redis.call('HLEN', inbox) >= tonumber(ARGV[3]) then
    return {'full'}
  end
  redis.call('HSET', inbox, ARGV[1], ARGV[2])
end
publish(ARGV[4], ARGV[1])
return {'ok'}
